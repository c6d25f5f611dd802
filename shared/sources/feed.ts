import { z } from 'zod'
import { type CommandFeed, type FilesFeed, toLocalFeed } from './local-feed.ts'
import { environmentName } from '../config/values.ts'
import type { YamlPath } from '../config/yaml.ts'

/*
 * Sources that bring their events themselves: nothing is sent to the path of such a webhook, which needs neither a
 * public address nor a secret.
 */

/** The origin of the events of a webhook that takes no requests. */
export type Feed = TokenFeed | CommandFeed | FilesFeed

/** The feeds of a sender, which a token opens. */
export type TokenFeed =
  /** Slack's Socket Mode; the variable has an app-level token (xapp-…). */
  | { readonly kind: 'slack'; readonly tokenEnv: string }
  /** The updates of a bot of Telegram, from these people alone. */
  | { readonly kind: 'telegram'; readonly tokenEnv: string; readonly from: readonly number[] }

export type FeedKind = Feed['kind']

export const feedProviders = ['slack', 'telegram'] as const satisfies readonly TokenFeed['kind'][]

export const hasToken = (feed: Feed): feed is TokenFeed =>
  feed.kind === 'slack' || feed.kind === 'telegram'

export const isFeedProvider = (
  provider: string | undefined,
): provider is (typeof feedProviders)[number] =>
  provider !== undefined && (feedProviders as readonly string[]).includes(provider)

/** The keys of `source` for them. */
export const feedFields = {
  app_token_env: environmentName
    .optional()
    .describe('slack: environment variable with the app-level token (xapp-…). Required.'),
  token_env: environmentName
    .optional()
    .describe('telegram: environment variable with the token of the bot. Required.'),
  from: z
    .array(z.int().min(1))
    .min(1)
    .optional()
    .describe(
      'telegram: the ids of the people whose messages and buttons count; all others are ignored. Required.',
    ),
}

type FeedEntry = {
  readonly [Name in keyof typeof feedFields]?: z.output<(typeof feedFields)[Name]>
} & { readonly provider?: string | undefined; readonly mode?: string | undefined }

const modes = { slack: 'socket', telegram: 'poll' } as const

const needed = { slack: ['app_token_env'], telegram: ['token_env', 'from'] } as const

/** Checks the keys of a feed. `others` are those that the schema has for other senders. */
export const checkFeed = (
  source: FeedEntry,
  others: readonly string[],
  report: (key: YamlPath, reason: string, hint?: string) => void,
): void => {
  const { provider, mode } = source
  if (!isFeedProvider(provider)) return
  const at = (key: string, reason: string, hint?: string) => report(['source', key], reason, hint)
  if (mode !== modes[provider])
    at(
      'mode',
      mode === undefined ? 'missing' : `not a mode of ${provider}`,
      `write mode: ${modes[provider]}${provider === 'slack' ? ', or leave source out where Slack posts to this machine' : ''}`,
    )
  const own: readonly string[] = needed[provider]
  for (const key of own) if (!(key in source)) at(key, 'missing', hints[key])
  for (const key of [...Object.keys(feedFields), ...others])
    if (!own.includes(key) && key in source) at(key, `not used with ${provider}`, 'remove it')
}

const hints: Readonly<Record<string, string>> = {
  app_token_env: 'name the variable with the app-level token: doorward help slack',
  token_env: 'name the variable with the token of your bot: doorward help telegram',
  from: 'without it anyone who finds the bot could start your agent: doorward help telegram',
}

/** Undefined for a sender that posts, or whose list of deliveries is read. */
export const toFeed = (source: FeedEntry & Parameters<typeof toLocalFeed>[0]): Feed | undefined =>
  toTokenFeed(source) ?? toLocalFeed(source)

const toTokenFeed = ({
  provider,
  app_token_env: appToken = '',
  token_env: botToken = '',
  from = [],
}: FeedEntry): TokenFeed | undefined => {
  if (provider === 'slack') return { kind: 'slack', tokenEnv: appToken }
  return provider === 'telegram' ? { kind: 'telegram', tokenEnv: botToken, from } : undefined
}

/** How its events come, for people. */
export const describeFeed = (kind: string): string => howOf[kind] ?? `read from ${kind} by polling`

const howOf: Readonly<Record<string, string>> = {
  slack: 'read from slack by socket',
  command: 'a line of a program of this machine',
  files: 'a file of this machine',
}
