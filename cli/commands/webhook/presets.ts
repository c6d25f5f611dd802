import { readFileSync } from 'node:fs'
import { DoorwardError } from '../../../shared/errors.ts'
import { formatPath, type Path } from '../../../shared/paths.ts'
import { toScheme } from '../../../shared/signatures/described.ts'
import {
  describedNames,
  presetSchemes,
  schemeAliases,
  type SchemeName,
} from '../../../shared/signatures/presets.ts'
import {
  getKeySource,
  type HandshakeKind,
  type SignatureScheme,
  signsAddress,
} from '../../../shared/signatures/scheme.ts'
import { findShortSample } from '../../../shared/samples/samples.ts'
import { didYouMean } from '../../../shared/text.ts'
import { packageFolder } from '../../../shared/version.ts'
import { reviewEvents, reviewTarget } from './review-recipe.ts'
import { findRuleRecipe, ruleRecipes, type WrittenRule } from './rule-recipes.ts'

/** What `webhook add` knows about a sender, besides how it signs. */
export type WebhookPreset = {
  readonly scheme: SchemeName
  readonly title: string
  /** `ours`: doorward makes it and the user enters it at the sender. `theirs`: the sender makes it. */
  readonly secret: 'ours' | 'theirs'
  /** The sender takes no secret of 64 characters. */
  readonly isShort?: true
  /** The sender's name for the secret. */
  readonly secretIs: string
  /** The place at the sender where the URL is entered. */
  readonly where: string
  /** The field that names the variable of the secret or key; none where the sender publishes its keys. */
  readonly keyField?: 'secret_env' | 'public_key_env' | 'none'
  /** Other fields without which nothing can be verified. */
  readonly needs?: readonly string[]
  readonly whyNeeded?: string
  /** The sender signs the public address. */
  readonly signsAddress?: boolean
  /** What the owner is asked before doorward accepts the first request of the sender. */
  readonly consent?: string
  /** A commented example of a filter. */
  readonly filterExample?: string
  /** A built-in payload that its prompt is for. */
  readonly sample?: string
  /** `review` adds what `webhook add github-review` writes besides; the others are whole rules, by their names. */
  readonly recipe?: string
  /** The agent answers in the chat, which needs no address: its `source`, but for the ids of people. */
  readonly feed?: Readonly<Record<string, string>>
}

/** A key of YAML, which begins with no bracket. */
const toKey = (path: Path): string => {
  const text = formatPath(path)
  return text.startsWith('[') ? `'${text}'` : text
}

/** What the table of schemes says of a sender. */
const toPreset = (scheme: SignatureScheme<SchemeName>): WebhookPreset => {
  const { name, title, secretIs, where, makesSecret, event, forms, handshake } = scheme
  const isKey = forms.some(({ secret }) => secret === 'public-key')
  const consent = handshake && consents[handshake]
  const needs = neededFields[name]
  const sample = findShortSample(name)
  return {
    scheme: name,
    title,
    secret: makesSecret ? ('ours' as const) : ('theirs' as const),
    ...(makesSecret === 'short' && { isShort: true }),
    secretIs,
    where,
    keyField: getKeySource(scheme) ? 'none' : isKey ? 'public_key_env' : 'secret_env',
    ...(needs && { needs: needs.fields, whyNeeded: needs.why }),
    ...(signsAddress(scheme) && { signsAddress: true }),
    ...(consent !== undefined && { consent }),
    ...(sample !== undefined && { sample }),
    ...(event?.field !== undefined && {
      filterExample: `${toKey([...(event.items ?? []), ...event.field.split('.')])}: [one, another]`,
    }),
  }
}

/** The fields of an entry that only its owner knows. */
const neededFields: {
  readonly [Name in SchemeName]?: { readonly fields: readonly string[]; readonly why: string }
} = {
  'google-pubsub': {
    fields: ['audience', 'service_account'],
    why: 'they are those of the subscription: anyone can have Google sign a token for another one',
  },
  'aws-sns': {
    fields: ['audience'],
    why: '--audience is the ARN of the topic: anyone can have Amazon sign a message of another one',
  },
  'github-actions': {
    fields: ['claims'],
    why: 'anyone can have GitHub sign a token of another repository: write --field claims.repository=OWNER/NAME',
  },
  paypal: {
    fields: ['webhook_id'],
    why: 'its signature covers the id of your webhook: write --field webhook_id=…',
  },
  plaid: {
    fields: ['client_id'],
    why: 'the keys of Plaid are given to its customers: write --field client_id=…',
  },
  oidc: {
    fields: ['issuer', 'audience'],
    why: 'issuer is the iss of its tokens, and audience their aud: write --field issuer=https://…',
  },
  'public-key': {
    fields: ['algorithm', 'signature_header'],
    why: 'write --field algorithm=ed25519, ecdsa-p256 or rsa-sha256, and the header with the signature',
  },
}

/** Senders that prove themselves in a challenge by a token in the address. */
const verifyTokenSenders = ['meta', 'strava']

/** Their first request is not answered without consent. */
const consents: { readonly [Kind in HandshakeKind]?: string } = {
  asana: 'Keep the secret that comes with the first request of Asana in .env?',
  'aws-sns': 'Confirm the subscription when Amazon SNS asks for it?',
}

/** Examples that fit the sender better than its event. */
const examples: Readonly<Record<string, Pick<WebhookPreset, 'filterExample' | 'sample'>>> = {
  github: {
    filterExample: 'pull_request.base.ref: [main, next]',
    sample: 'github:pull_request.opened',
  },
  gitlab: { filterExample: 'project.path_with_namespace: [group/one, group/two]' },
  stripe: { filterExample: 'livemode: [true]', sample: 'stripe:invoice.paid' },
  slack: { filterExample: 'event.channel: [C0123456789]', sample: 'slack:app_mention' },
  shopify: { filterExample: 'financial_status: [paid]' },
  linear: { filterExample: 'data.team.key: [ENG, OPS]' },
  sentry: { filterExample: 'action: [created, triggered]' },
  meta: { filterExample: 'object: [page, whatsapp_business_account]' },
  'standard-webhooks': { filterExample: 'type: [one, another]' },
  token: { filterExample: 'type: [one, another]' },
  hmac: { filterExample: 'type: [one, another]' },
  'public-key': { filterExample: 'type: [one, another]' },
  oidc: { filterExample: 'type: [one, another]' },
}

const noFields = { header: '', algorithm: 'sha256', prefix: '' } as const

/**
 * The events that the prompt of a sender is for, where it is not for all: no other one runs an agent with empty
 * fields.
 */
const promptEvents: Readonly<Record<string, readonly string[]>> = {
  bitbucket: ['pullrequest:created', 'repo:push'],
  calendly: ['invitee.created', 'invitee.canceled'],
  gitea: ['pull_request.opened', 'pull_request.reopened'],
  github: ['pull_request.opened', 'pull_request.reopened'],
  gitlab: ['push', 'merge_request', 'issue', 'note', 'pipeline'],
  jira: ['jira:issue_created', 'jira:issue_updated', 'comment_created'],
  linear: ['Issue', 'Comment'],
  sentry: ['issue', 'error', 'event_alert', 'metric_alert'],
  shopify: ['orders/create', 'orders/paid', 'orders/cancelled'],
  slack: ['app_mention'],
  stripe: [
    'invoice.paid',
    'invoice.payment_failed',
    'charge.failed',
    'charge.dispute.created',
    'checkout.session.completed',
  ],
  woocommerce: ['order.created', 'order.updated'],
}

/** The prompt of a preset: it picks the fields of the sender's events, and says what it leaves out. */
export const readPrompt = (preset: string): string =>
  readFileSync(new URL(`assets/prompts/${preset}.liquid`, packageFolder), 'utf8')

/** Presets by name. */
export const webhookPresets: Readonly<Record<string, WebhookPreset>> = Object.fromEntries(
  [...presetSchemes, ...describedNames.map((name) => toScheme(name, noFields))].map((scheme) => [
    scheme.name,
    { ...toPreset(scheme), ...examples[scheme.name] },
  ]),
)

/** Complete rules for a sender, by name; `webhook add` takes them as it takes presets. */
export const recipes: Readonly<Record<string, string>> = {
  'github-review': 'GitHub: reviews of pull requests',
  ...Object.fromEntries(Object.entries(ruleRecipes).map(([name, { title }]) => [name, title])),
  'slack-agent': 'Slack: mentions and direct messages, by socket',
  'telegram-agent': 'Telegram: messages of yours, by polling',
}

const feeds: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'slack-agent': { provider: 'slack', mode: 'socket', app_token_env: 'SLACK_APP_TOKEN' },
  'telegram-agent': { provider: 'telegram', mode: 'poll', token_env: 'TELEGRAM_BOT_TOKEN' },
}

const findRecipe = (name: string): WebhookPreset | undefined => {
  if (!Object.hasOwn(recipes, name)) return undefined
  const feed = Object.hasOwn(feeds, name) ? feeds[name] : undefined
  const { filterExample: _, ...chat } = webhookPresets[feed?.['provider'] ?? ''] ?? {}
  if (feed && 'scheme' in chat) return { ...chat, keyField: 'none', secret: 'theirs', feed }
  const { scheme = 'github' } = findRuleRecipe(name) ?? {}
  const preset = webhookPresets[scheme]
  return preset && { ...preset, recipe: name === 'github-review' ? 'review' : name }
}

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

/** The preset with this name. Throws `usage` with the nearest name. */
export const findPreset = (given: string): WebhookPreset => {
  const name = Object.hasOwn(schemeAliases, given)
    ? schemeAliases[given as keyof typeof schemeAliases]
    : given
  const preset = Object.hasOwn(webhookPresets, name) ? webhookPresets[name] : findRecipe(name)
  if (preset) return preset
  const names = [...Object.keys(recipes), ...Object.keys(webhookPresets)]
  throw new DoorwardError('usage', `there is no preset "${given}"`, {
    hint: didYouMean(given, names) ?? `one of ${names.join(', ')}`,
  })
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
  /** Ids of the people who may start it. */
  readonly from?: readonly number[]
  /** What the sender needs besides a secret. */
  readonly fields?: Readonly<Record<string, EntryField>>
}

export type EntryField = string | true | Readonly<Record<string, string>>
