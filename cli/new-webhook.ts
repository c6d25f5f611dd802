import { DoorwardError } from '../shared/errors.ts'
import { nearest } from '../shared/text.ts'
import type { NewWebhook } from './webhook-entry.ts'
import { type WebhookPreset, webhookPresets } from './webhook-presets.ts'

export type WebhookAddOptions = {
  readonly path?: string
  readonly agent?: string
  readonly filter?: readonly string[]
  readonly deliverTo?: readonly string[]
  readonly prompt?: string
  readonly secretEnv?: string
  readonly secretStdin?: boolean
  readonly showSecret?: boolean
  readonly print?: boolean
}

/** The preset of this name. Throws `usage` with the nearest. */
export const presetOf = (given: string): WebhookPreset => {
  const name = given === 'svix' ? 'standard-webhooks' : given
  const preset = Object.hasOwn(webhookPresets, name) ? webhookPresets[name] : undefined
  if (preset) return preset
  const names = Object.keys(webhookPresets)
  throw new DoorwardError('usage', `there is no preset "${given}"`, {
    hint: nearest(given, names) ?? `one of ${names.join(', ')}`,
  })
}

/** The webhook that these options and the preset describe. Throws `usage`. */
export const newWebhook = (
  preset: WebhookPreset,
  options: WebhookAddOptions,
  agents: readonly string[],
): NewWebhook => {
  const path = options.path ?? `/webhook/${preset.scheme}`
  const secretEnv = options.secretEnv ?? `${variablePart(path)}_WEBHOOK_SECRET`
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(secretEnv))
    throw new DoorwardError('usage', `--secret-env ${secretEnv} is not the name of a variable`, {
      hint: 'it is a name such as GITHUB_WEBHOOK_SECRET, never the secret itself',
    })
  return {
    path,
    agent: options.agent ?? onlyAgent(agents),
    filter: options.filter ? filterOf(options.filter) : (preset.filter ?? {}),
    deliverTo: options.deliverTo ?? ['notify:desktop'],
    prompt: options.prompt ?? preset.prompt,
    secretEnv,
  }
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

/** The one agent there is, `echo` not counted where there is another. */
const onlyAgent = (names: readonly string[]): string => {
  const others = names.length > 1 ? names.filter((name) => name !== 'echo') : names
  const [only] = others
  if (only !== undefined && others.length === 1) return only
  throw new DoorwardError(
    'usage',
    only === undefined ? 'there is no agent yet' : 'which agent is to answer is not clear',
    {
      hint:
        only === undefined
          ? 'doorward agent add claude'
          : `--agent with one of ${names.join(', ')}`,
    },
  )
}

/** `action=opened` and `action=reopened`: either of them. */
const filterOf = (texts: readonly string[]): Record<string, string[]> => {
  const filter: Record<string, string[]> = Object.create(null) as Record<string, string[]>
  for (const text of texts) {
    const at = text.indexOf('=')
    const key = text.slice(0, at)
    if (at < 1)
      throw new DoorwardError('usage', `--filter ${text} is no condition`, {
        hint: 'write it as path=value, for example action=opened',
      })
    filter[key] = [...(filter[key] ?? []), text.slice(at + 1)]
  }
  return filter
}
