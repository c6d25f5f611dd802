import { z } from 'zod'
import { botSlugForm } from '../api/bots.ts'
import { checkFeed, feedFields, feedProviders, isFeedProvider } from '../sources/feed.ts'
import { checkLocalFeed, localFields } from '../sources/local-feed.ts'
import { environmentName, optionalDuration, secureUrl } from './values.ts'
import type { YamlPath } from './yaml.ts'

/** A hook at its sender. */
export type HookRef = {
  /** The path of a repository or project, or of an organisation or group. */
  readonly repository: string
  readonly hookId: number
}

/** The hook that delivers to a webhook, where `webhook connect` made it; of Stripe its list of events. */
export type WebhookSource = HookRef & {
  readonly provider: SourceProvider
  /** The variable with the key of Stripe. */
  readonly keyEnv?: string
  readonly apiUrl?: string
  /** The bot whose hook it is, by its slug: for all repositories in which it is installed. */
  readonly app?: string
  /** Nothing is sent here: the deliveries are read from the sender. */
  readonly mode?: 'poll'
}

/** What becomes of the deliveries that did not arrive. */
export type CatchUpSettings = {
  readonly mode: 'ask' | 'newest' | 'all'
  readonly atMost: number
  /** How often the list is read, with `mode: poll`. */
  readonly everyMs?: number
}

/** The parts of a hook. */
export type HookSettings = {
  readonly url: string
  readonly secret: string
  readonly events: readonly string[]
}

/** Senders whose hooks are made by their API. */
export const hookProviders = ['github', 'gitlab'] as const
export type HookProvider = (typeof hookProviders)[number]

export const sourceProviders = [...hookProviders, 'stripe'] as const
export type SourceProvider = (typeof sourceProviders)[number]

export const repositorySchema = z
  .string()
  .max(200)
  .regex(
    /^[A-Za-z0-9_][\w.-]*(\/[\w.-]+)*$/,
    'not owner/repository, or the name of an organisation',
  )
  .refine((name) => !/(^|\/)\.{1,2}(\/|$)/.test(name), 'not owner/repository')

export const sourceSchema = z.strictObject({
  provider: z
    .enum([...sourceProviders, ...feedProviders])
    .optional()
    .describe('The sender. One of provider, command and files is required.'),
  repository: repositorySchema
    .optional()
    .describe(
      'github and gitlab: owner/name of the repository or project, or an organisation or group. Required.',
    ),
  hook_id: z
    .int()
    .min(1)
    .optional()
    .describe('github and gitlab: the number of the hook there. Required.'),
  app: z
    .string()
    .regex(botSlugForm, 'not the name of a bot')
    .optional()
    .describe(
      'github: the bot whose deliveries these are, of all its repositories, instead of repository and hook_id.',
    ),
  key_env: environmentName
    .optional()
    .describe(
      'stripe: environment variable with a restricted key that may read events (Events: Read). Required.',
    ),
  api_url: secureUrl
    .optional()
    .describe('stripe: base URL of its API. Default https://api.stripe.com.'),
  mode: z
    .enum(['push', 'poll', 'socket'])
    .optional()
    .describe(
      'push: the sender posts to this machine; poll: its list of deliveries is read, and no public address is needed (not GitLab); socket: slack alone, by Socket Mode. Default: push.',
    ),
  ...feedFields,
  ...localFields,
  every: optionalDuration(
    'With mode poll: how often the list is read, from 30s to 1h; after quiet times less often. Default: 1m.',
  ),
  catch_up: z
    .enum(['ask', 'newest', 'all', 'off'])
    .optional()
    .describe(
      'What to do with deliveries that did not arrive: ask, run the newest and leave out the others, run all, or look for none. Default: ask, with mode poll all.',
    ),
  at_most: z
    .int()
    .min(1)
    .max(1000)
    .optional()
    .describe('How many of them run at a time; the others wait for you. Default: 20.'),
})

/** The scopes of which a login needs one to manage the hooks there; the first is asked for. */
export const hookScopes = (
  provider: HookProvider,
  repository: string,
): readonly [string, ...string[]] => {
  if (provider === 'gitlab') return ['api']
  return repository.includes('/')
    ? ['admin:repo_hook', 'repo', 'write:repo_hook']
    : ['admin:org_hook']
}

export type SourceEntry = z.output<typeof sourceSchema>

/** Without those that bring their events themselves. */
export type HookEntry = SourceEntry & { readonly provider: SourceProvider }

export const isHookEntry = (source: SourceEntry): source is HookEntry =>
  source.provider !== undefined && !isFeedProvider(source.provider)

/** The keys of hooks alone. */
const hookFields = [
  'repository',
  'hook_id',
  'app',
  'key_env',
  'api_url',
  'every',
  'catch_up',
  'at_most',
]

/** Checks what the schema cannot. */
export const checkSource = (
  source: SourceEntry,
  scheme: string | undefined,
  report: (key: YamlPath, reason: string, hint?: string) => void,
): void => {
  const at = (key: keyof SourceEntry, reason: string, hint?: string) =>
    report(['source', key], reason, hint)
  const { provider, mode, every } = source
  if (provider === undefined) {
    if (source.command ?? source.files) return checkLocalFeed(source, report)
    return report(['source'], 'it has neither provider, command nor files')
  }
  for (const key of Object.keys(localFields) as (keyof typeof localFields)[])
    if (source[key] !== undefined) at(key, 'not used with provider', 'remove one of them')
  const isStripe = provider === 'stripe'
  if (scheme !== undefined && scheme !== provider)
    report(['source'], `signature_scheme ${scheme} is not that of ${provider}`)
  if (!isHookEntry(source)) return checkFeed(source, hookFields, report)
  for (const key of ['app_token_env', 'token_env', 'from'] as const)
    if (source[key] !== undefined) at(key, `not used with ${provider}`, 'remove it')
  if (mode === 'socket') at('mode', 'used with slack only', 'remove mode')
  const { app } = source
  if (app !== undefined && provider !== 'github') at('app', 'used with github only', 'remove it')
  const hasNoHook = isStripe ? 'not used with stripe' : app !== undefined && 'not used with app'
  for (const key of ['repository', 'hook_id'] as const) {
    if (hasNoHook && source[key] !== undefined) at(key, hasNoHook, 'remove it')
    if (!hasNoHook && source[key] === undefined)
      at(key, 'missing', 'doorward webhook connect makes the hook and writes it')
  }
  if (isStripe && source.key_env === undefined) at('key_env', 'missing')
  for (const key of ['key_env', 'api_url'] as const)
    if (!isStripe && source[key] !== undefined) at(key, 'used with stripe only', 'remove it')
  if (mode === 'poll' && provider === 'gitlab')
    at('mode', 'GitLab switches a hook off that reaches no address', 'remove mode')
  if (mode === 'poll' && source.catch_up === 'off')
    at('catch_up', 'with mode: poll nothing would ever come', 'remove catch_up')
  if (every !== undefined && (every < 30_000 || every > 3_600_000))
    at('every', 'must be between 30s and 1h')
  if (every !== undefined && mode !== 'poll')
    at('every', 'has an effect only with mode: poll', 'add mode: poll, or remove every')
}

/** With a name in place of the repository where the sender has none. */
export const toSource = (
  {
    provider,
    repository,
    hook_id: hookId = 0,
    mode,
    key_env: keyEnv,
    api_url: apiUrl,
    app,
  }: HookEntry,
  path: string,
): WebhookSource => ({
  provider,
  repository: repository ?? (app === undefined ? `Stripe at ${path}` : `the bot ${app}`),
  hookId,
  ...(mode === 'poll' && { mode }),
  ...(keyEnv !== undefined && { keyEnv }),
  ...(apiUrl !== undefined && { apiUrl }),
  ...(app !== undefined && { app }),
})

/** Undefined where no deliveries are caught up. */
export const toCatchUp = ({
  mode: how,
  every: everyMs = 60_000,
  catch_up: mode = how === 'poll' ? 'all' : 'ask',
  at_most: atMost = 20,
}: HookEntry): CatchUpSettings | undefined =>
  mode === 'off' ? undefined : { mode, atMost, ...(how === 'poll' && { everyMs }) }
