import { z } from 'zod'
import { optionalDuration } from './values.ts'

/** A hook at its sender. */
export type HookRef = {
  /** The path of a repository or project, or of an organisation or group. */
  readonly repository: string
  readonly hookId: number
}

/** The hook that delivers to a webhook, where `webhook connect` made it. */
export type WebhookSource = HookRef & {
  readonly provider: SourceProvider
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

/** What a hook is made of. */
export type HookSettings = {
  readonly url: string
  readonly secret: string
  readonly events: readonly string[]
}

export const sourceProviders = ['github', 'gitlab'] as const
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
  provider: z.enum(sourceProviders).describe('The sender.'),
  repository: repositorySchema.describe(
    'owner/name of the repository or project, or an organisation or group.',
  ),
  hook_id: z.int().min(1).describe('The number of the hook there.'),
  mode: z
    .enum(['push', 'poll'])
    .optional()
    .describe(
      'push: the sender posts to this machine; poll: its list of deliveries is read, and no public address is needed (not GitLab). Default: push.',
    ),
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
  provider: SourceProvider,
  repository: string,
): readonly [string, ...string[]] => {
  if (provider === 'gitlab') return ['api']
  return repository.includes('/')
    ? ['admin:repo_hook', 'repo', 'write:repo_hook']
    : ['admin:org_hook']
}
