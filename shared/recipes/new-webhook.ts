import { DoorwardError } from '../errors.ts'
import { reviewEvents, reviewTarget } from './review-recipe.ts'
import { findRuleRecipe, type WrittenRule } from './rule-recipes.ts'
import { promptEvents, readPrompt, verifyTokenSenders, type WebhookPreset } from './presets.ts'

export type WebhookAddOptions = {
  readonly path?: string
  readonly agent?: string
  readonly on?: readonly string[]
  readonly filter?: readonly string[]
  readonly deliverTo?: readonly string[]
  readonly prompt?: string
  readonly secretEnv?: string
  readonly secretStdin?: boolean
  readonly showSecret?: boolean
  readonly audience?: string
  readonly serviceAccount?: string
  readonly tokenIn?: string
  /** Other fields of the entry, as `issuer=https://…`. */
  readonly field?: readonly string[]
  /** The bot that gets the rule of a recipe, by its slug; false for none. */
  readonly bot?: string | false
  /** The repository to which the rule of a recipe is limited; of `sentry-fix` that of the code. */
  readonly repo?: string
  /** Ids of people in Telegram. */
  readonly from?: readonly string[]
  /** The consent of the owner. */
  readonly yes?: boolean
  readonly print?: boolean
}

/** Builds a webhook from the preset and these options. Throws `usage`. */
export const newWebhook = (
  preset: WebhookPreset,
  options: WebhookAddOptions,
  agents: readonly string[],
): NewWebhook => {
  const isReview = preset.recipe === 'review'
  if (options.from && preset.feed?.['provider'] !== 'telegram')
    throw new DoorwardError('usage', '--from is for telegram-agent only')
  if (!options.from && preset.feed?.['provider'] === 'telegram')
    throw new DoorwardError('usage', 'telegram-agent needs --from with your id in Telegram', {
      hint: 'doorward help telegram says where to find it',
    })
  if (findRuleRecipe(preset.recipe)) refuseParts(preset.recipe ?? '', options)
  const path = options.path ?? `/webhook/${toEntryName(preset)}${preset.feed ? '-agent' : ''}`
  const kind = preset.keyField === 'public_key_env' ? 'PUBLIC_KEY' : 'WEBHOOK_SECRET'
  const secretEnv = options.secretEnv ?? `${variablePart(path)}_${kind}`
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(secretEnv))
    throw new DoorwardError('usage', `--secret-env ${secretEnv} is not the name of a variable`, {
      hint: 'it is a name such as GITHUB_WEBHOOK_SECRET, never the secret itself',
    })
  const on = isReview
    ? reviewEvents
    : preset.feed?.['provider'] === 'slack'
      ? ['app_mention', 'message.im']
      : (promptEvents[preset.scheme] ?? [])
  return {
    path,
    agent: options.agent ?? onlyAgent(agents),
    on: isReview ? (options.on ?? on) : chooseEvents(on, options),
    filter: parseFilter([
      ...(options.repo === undefined ? [] : [`repository.full_name=${options.repo}`]),
      ...(options.filter ?? (isReview ? ['pull_request.draft=false'] : [])),
    ]),
    deliverTo: options.deliverTo ?? [
      isReview ? reviewTarget : preset.feed ? 'reply' : 'notify:desktop',
    ],
    ...(options.from && { from: options.from.map(toPersonId) }),
    prompt: options.prompt ?? readPrompt(isReview ? 'github-review' : preset.scheme),
    secretEnv,
    fields: readFields(preset, options, path),
  }
}

const toPersonId = (text: string): number => {
  if (/^[1-9]\d{0,15}$/.test(text)) return Number(text)
  throw new DoorwardError('usage', `--from ${text} is not the id of a person`, {
    hint: 'it is a number, such as 123456789; a name can be taken over by someone else',
  })
}

const readFields = (
  preset: WebhookPreset,
  options: WebhookAddOptions,
  path: string,
): NewWebhook['fields'] => {
  const { audience, serviceAccount: account, tokenIn, yes } = options
  const given: Record<string, EntryField> = {
    ...(audience !== undefined && { audience }),
    ...(account !== undefined && { service_account: account }),
    ...(tokenIn !== undefined && { token_in: tokenIn }),
    ...parseFields(options.field ?? []),
  }
  const missing = (preset.needs ?? []).filter((name) => given[name] === undefined)
  if (missing.length > 0)
    throw new DoorwardError(
      'usage',
      `${preset.scheme} needs ${missing.map(toOption).join(' and ')}`,
      preset.whyNeeded === undefined ? {} : { hint: preset.whyNeeded },
    )
  return {
    ...given,
    // Otherwise the App Secret would be sent in an address.
    ...(verifyTokenSenders.includes(preset.scheme) && {
      verify_token_env: `${variablePart(path)}_VERIFY_TOKEN`,
    }),
    ...(preset.consent !== undefined && yes && { confirm: true }),
  }
}

const toOption = (name: string): string =>
  name === 'audience' || name === 'service_account'
    ? `--${name.replace('_', '-')}`
    : `--field ${name}=…`

/** `claims.sub=…` is a field of a map. Whether the entry has such a field, the schema says. */
const parseFields = (texts: readonly string[]): Record<string, EntryField> => {
  const fields: Record<string, EntryField> = {}
  for (const text of texts) {
    const [, name, within, value] = /^([a-z_]+)(?:\.([^=]+))?=(.+)$/s.exec(text) ?? []
    if (name === undefined || value === undefined)
      throw new DoorwardError('usage', `--field ${text} is not a field`, {
        hint: 'write it as name=value, for example issuer=https://token.example',
      })
    const before = fields[name]
    fields[name] =
      within === undefined ? value : { ...(typeof before === 'object' && before), [within]: value }
  }
  return fields
}

/** The events of the preset's prompt: a filter of the user's replaces their actions, a prompt all. */
const chooseEvents = (events: readonly string[], options: WebhookAddOptions): readonly string[] => {
  if (options.on) return options.on
  if (options.prompt !== undefined) return []
  return options.filter
    ? [...new Set(events.map((name) => name.replace(/^(pull_request)\..*/, '$1')))]
    : events
}

/** The name of a new entry: that of the recipe for GitHub, where the sample has the name of the sender. */
const toEntryName = ({ scheme, recipe }: WebhookPreset): string => {
  if (recipe === 'review') return `${scheme}-review`
  return scheme === 'github' ? (recipe ?? scheme) : scheme
}

/** A recipe is a whole rule, whose parts belong together. */
const refuseParts = (
  recipe: string,
  { on, filter, deliverTo, prompt }: WebhookAddOptions,
): void => {
  const given = Object.entries({
    '--on': on,
    '--filter': filter,
    '--deliver-to': deliverTo,
    '--prompt': prompt,
  })
  const [part] = given.flatMap(([name, value]) => (value === undefined ? [] : [name]))
  if (part !== undefined)
    throw new DoorwardError('usage', `${recipe} writes a whole rule, and takes no ${part}`, {
      hint: 'change the rule afterwards: doorward config edit webhooks',
    })
}

/** `/webhook/github-work` is `GITHUB_WORK`. */
const variablePart = (path: string): string => {
  const name = path
    .replace(/^\/(webhook\/)?/, '')
    .replaceAll(/[^A-Za-z0-9]+/g, '_')
    .replaceAll(/^_+|_+$/g, '')
    .toUpperCase()
  return /^[A-Z]/.test(name) ? name : `W_${name}`
}

/** The only agent, not counting `echo` when there is another. Throws `usage` where the choice is unclear. */
const onlyAgent = (names: readonly string[]): string => {
  const others = names.length > 1 ? names.filter((name) => name !== 'echo') : names
  const [only] = others
  if (only !== undefined && others.length === 1) return only
  throw new DoorwardError(
    'usage',
    only === undefined ? 'there is no agent yet' : 'there is more than one agent: choose one',
    {
      hint:
        only === undefined
          ? 'doorward agent add claude'
          : `--agent with one of ${names.join(', ')}`,
    },
  )
}

/** Values of the same path are alternatives: `action=opened`, `action=reopened`. */
const parseFilter = (texts: readonly string[]): Record<string, string[]> => {
  const filter: Record<string, string[]> = Object.create(null) as Record<string, string[]>
  for (const text of texts) {
    const at = text.indexOf('=')
    const key = text.slice(0, at)
    if (at < 1)
      throw new DoorwardError('usage', `--filter ${text} is not a condition`, {
        hint: 'write it as path=value, for example action=opened',
      })
    filter[key] = [...(filter[key] ?? []), text.slice(at + 1)]
  }
  return filter
}

/** A webhook to be written to `webhooks.yaml`. */
export type NewWebhook = {
  readonly path: string
  readonly agent: string
  /** The events that run it; none means all. */
  readonly on: readonly string[]
  /** Accepted values by dot path. */
  readonly filter: Readonly<Record<string, readonly string[]>>
  readonly deliverTo: readonly string[]
  readonly prompt: string
  readonly secretEnv: string
  /** The rule of a recipe, in place of `on` to `prompt`. */
  readonly rule?: WrittenRule
  /** What holds a new rule back. */
  readonly brakes?: WrittenRule
  /** Ids of the people who may start it. */
  readonly from?: readonly number[]
  /** The sender needs these besides a secret. */
  readonly fields?: Readonly<Record<string, EntryField>>
}

export type EntryField = string | true | Readonly<Record<string, string>>
