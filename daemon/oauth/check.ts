import type { StatusProblem, TokenSummary } from '../../shared/api/api.ts'
import { type Check, checksFor, measureClock } from '../../shared/api/checks.ts'
import { listSecrets } from '../../shared/config/environment.ts'
import type { Config } from '../../shared/config/load.ts'
import { formatLogin, getProviderName } from '../../shared/config/name-forms.ts'
import type { Gateway } from '../../shared/config/schema.ts'
import { enabledRules } from '../../shared/schedules/definitions.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type DefaultAccounts, resolveLogin } from '../../shared/home/default-accounts.ts'
import { expiryWords, loginCommand, shortScopes } from '../../shared/login-words.ts'
import { type SentKind, sentKinds } from '../../shared/targets/schema.ts'
import { type Target } from '../../shared/targets/targets.ts'
import { getProviders } from '../agents/environment.ts'
import type { Senders } from '../delivery/deliver.ts'
import type { NeededToken } from '../delivery/token.ts'
import { findProvider } from './providers/providers.ts'
import { askProvider } from './providers/request.ts'

const { ok, warning, error, skipped } = checksFor('logins')

type NeededLogin = NeededToken & {
  /** The targets and agents that use it, as the configuration names them. */
  readonly by: readonly string[]
  /** A webhook takes the deliveries of this bot. */
  readonly isBot: boolean
}

type LoginFacts = {
  readonly tokens: readonly TokenSummary[]
  readonly problems: readonly StatusProblem[]
  readonly needed: readonly NeededLogin[]
  readonly gateway: Gateway
  readonly env: NodeJS.ProcessEnv
}

/** Checks the logins: whether they are valid, have their scopes, and exist where something needs them. */
export const checkLogins = ({ tokens, problems, needed, gateway, env }: LoginFacts): Check[] => {
  const findProblem = (name: string) => problems.find(({ about }) => about?.provider === name)
  const keychain = problems.find(
    ({ code, about }) => code === 'keychain-unavailable' && about?.provider === undefined,
  )
  const all = [
    ...(gateway.tokens.store !== 'keychain'
      ? []
      : keychain
        ? [warning('keychain', keychain.detail, keychain.hint)]
        : [ok('keychain', 'it has the key that seals the token files')]),
    ...tokens.flatMap((token) => {
      const need = needed.find(({ provider }) => provider === token.provider)
      return checkLogin(token, findProblem(token.provider), need)
    }),
    ...needed
      .filter(({ provider }) => !tokens.some((token) => token.provider === provider))
      .map(({ provider, by, isBot }) =>
        isBot
          ? error(
              provider,
              `there is no such bot here, which ${by.join(', ')} needs`,
              'doorward bot create github; or remove the entry: doorward config edit webhooks',
            )
          : error(
              provider,
              `not logged in, which ${by.join(', ')} needs`,
              `doorward oauth login ${provider}`,
            ),
      ),
    ...checkClients(gateway, env),
  ]
  return all.length > 0 ? all : [skipped('logins', 'no login, and nothing needs one')]
}

const checkLogin = (
  token: TokenSummary,
  problem: StatusProblem | undefined,
  need: NeededLogin | undefined,
): Check[] => {
  const { provider, status } = token
  if (problem?.code === 'token-file-insecure')
    return [skipped(provider, 'its token file is not read: see home')]
  if (problem) return [error(provider, problem.detail, problem.hint)]
  const words = expiryWords(token, new Date())
  if (status === 'needs-login') return [error(provider, words, `doorward oauth login ${provider}`)]
  return [
    status === 'expired'
      ? warning(provider, `${words}; the daemon could not refresh it yet`, 'doorward daemon logs')
      : ok(provider, words),
    ...checkScopes(token, need),
  ]
}

const checkScopes = (
  { provider, scopes, missingScopes = [] }: TokenSummary,
  need: NeededLogin | undefined,
): Check[] => {
  const name = `${provider} scopes`
  const { anyOf = [], by = [] } = need ?? {}
  // A token without scopes, as of a GitHub App, has other permissions.
  const isEnough = anyOf.length === 0 || scopes.length === 0
  if (!isEnough && !anyOf.some((scope) => scopes.includes(scope)))
    return [
      error(
        name,
        `${anyOf.length === 1 ? 'not granted: ' : 'none is granted of '}${shortScopes(anyOf).join(', ')}, which ${by.join(', ')} needs`,
        loginCommand(provider, [...scopes, anyOf[0] ?? '']),
      ),
    ]
  if (missingScopes.length === 0) return []
  return [
    warning(
      name,
      `asked for and not granted: ${shortScopes(missingScopes).join(', ')}`,
      loginCommand(provider, [...scopes, ...missingScopes]),
    ),
  ]
}

const checkClients = ({ providers }: Gateway, env: NodeJS.ProcessEnv): Check[] =>
  Object.entries(providers).flatMap(([name, { client_secret_env: variable }]) =>
    variable !== undefined && listSecrets([variable], env).length === 0
      ? [
          warning(
            name,
            `${variable} is unset or empty: logins send no client secret`,
            `set ${variable} in .env: doorward config edit env`,
          ),
        ]
      : [],
  )

/** The logins that enabled webhooks need, for their targets and in the environment of their agents. */
export const listNeededLogins = (
  config: Config,
  senders: Senders,
  defaults: DefaultAccounts,
): NeededLogin[] => {
  const needed = new Map<string, { anyOf: readonly string[]; by: Set<string> }>()
  const need = (name: string, by: string, anyOf: readonly string[]) => {
    const provider = resolveLogin(name, defaults)
    const { anyOf: others = [], by: users = new Set<string>() } = needed.get(provider) ?? {}
    needed.set(provider, { anyOf: anyOf.length > 0 ? anyOf : others, by: users.add(by) })
  }
  const bots = new Set<string>()
  for (const { path, enabled, source } of config.webhooks)
    if (enabled && source?.app !== undefined) {
      const bot = formatLogin({ provider: 'github', account: source.app })
      bots.add(bot)
      need(bot, `webhook ${path}`, [])
    }
  const { token_env: tokenEnv, login } = config.gateway.targets.github
  for (const { agent, agentName, targets, bot } of enabledRules(config)) {
    for (const { kind } of targets) {
      const token = isSent(kind) ? senders[kind].needs : undefined
      const isOfBot = token?.provider === 'github' && tokenEnv === undefined && !login && bot
      if (isOfBot) need(bot, `target ${kind}`, [])
      else if (token) need(token.provider, `target ${kind}`, token.anyOf)
    }
    for (const provider of getProviders('env' in agent ? (agent.env ?? {}) : {}))
      need(provider, `agent ${agentName}`, [])
  }
  return [...needed].map(([provider, { anyOf, by }]) => ({
    provider,
    anyOf,
    by: [...by],
    isBot: bots.has(provider),
  }))
}

const isSent = (kind: Target['kind']): kind is SentKind =>
  (sentKinds as readonly string[]).includes(kind)

type Reached = { readonly check: Check; readonly clockAheadMs?: number | undefined }

/** Asks whether the providers of these logins answer at all; sends no token. */
export const reachProviders = async (
  logins: readonly string[],
  gateway: Gateway,
  signal: AbortSignal,
): Promise<Reached[]> =>
  Promise.all(
    [...new Set(logins.map(getProviderName))].map(async (name) => reach(name, gateway, signal)),
  )

const reach = async (name: string, gateway: Gateway, signal: AbortSignal): Promise<Reached> => {
  const title = `${name} endpoint`
  try {
    const { tokenEndpoint, issuer } = findProvider(name, gateway)
    const url = new URL(tokenEndpoint ?? issuer ?? '')
    const { headers } = await askProvider(url.origin, { method: 'HEAD', limitMs: 6000 }, signal)
    return {
      check: ok(title, `${url.host} answers`),
      clockAheadMs: measureClock(headers.get('date')),
    }
  } catch (thrown) {
    if (!(thrown instanceof DoorwardError)) throw thrown
    // A login of a provider that was removed from gateway.yaml hurts nothing.
    const isDown = thrown.code === 'provider-unavailable'
    return { check: (isDown ? error : warning)(title, thrown.message, thrown.hint) }
  }
}
