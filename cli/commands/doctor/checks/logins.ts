import type { ProviderEntry } from '../../../../shared/config/schema.ts'
import { ask, type Reachable } from '../ask.ts'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Status, TokenSummary } from '../../../../shared/api.ts'
import { listSecrets } from '../../../../shared/config/environment.ts'
import type { Config } from '../../../../shared/config/load.ts'
import { enabledRules } from '../../../../shared/config/webhook.ts'
import type { Target } from '../../../../shared/targets/targets.ts'
import { compareLogins, getProviderName } from '../../../../shared/config/name-forms.ts'
import { findLoginProblem } from '../../../../shared/client/discovery.ts'
import { DoorwardError, systemCode } from '../../../../shared/errors.ts'
import { type DefaultAccounts, resolveLogin } from '../../../../shared/home/default-accounts.ts'
import { type Home, readSecretFile } from '../../../../shared/home/home.ts'
import { expiryWords, loginCommand, shortScopes } from '../../oauth/list.ts'
import { type Check, checksFor } from '../check.ts'
import type { ConfigurationFacts } from './configuration.ts'

const { ok, warning, error, skipped } = checksFor('logins')

/** Checks the logins: whether they are valid, have their scopes, and exist where something needs them. */
export const checkLogins = (
  files: readonly TokenFile[],
  status: Status | undefined,
  { config, env }: Pick<ConfigurationFacts, 'config' | 'env'>,
  now: Date,
  defaults: DefaultAccounts = {},
): Check[] => {
  const needed = config ? neededLogins(config, defaults) : []
  const found = files.flatMap((file) => {
    const reported = status?.tokens.find(({ provider }) => provider === file.provider)
    const need = needed.find(({ provider }) => provider === file.provider)
    if (file.is === 'sealed') return checkSealed(file.provider, status, need, now)
    if (file.is !== 'read' || !file.login) return unusable(file)
    // The daemon knows which scopes include others.
    const login = reported
      ? { ...file.login, ...reported, missingScopes: reported.missingScopes ?? [] }
      : file.login
    return checkLogin(file.provider, login, need, { isReported: reported !== undefined, now })
  })
  const missing = needed
    .filter(({ provider }) => !files.some((file) => file.provider === provider))
    .map(({ provider, by }) =>
      error(
        provider,
        `not logged in, which ${by.join(', ')} needs`,
        `doorward oauth login ${provider}`,
      ),
    )
  const clients = Object.entries(config?.gateway.providers ?? {}).flatMap(
    ([name, { client_secret_env: variable }]) =>
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
  const all = [...checkKeychain(config, status), ...found, ...missing, ...clients]
  return all.length > 0 ? all : [skipped('logins', 'no login, and nothing needs one')]
}

/** Only the daemon asks the keychain. */
const checkKeychain = (config: Config | undefined, status: Status | undefined): Check[] => {
  if (config?.gateway.tokens.store !== 'keychain') return []
  if (!status) return [skipped('keychain', 'only the running daemon asks it')]
  const problem = status.problems.find(
    ({ code, detail }) => code === 'keychain-unavailable' && !detail.includes('.json is sealed'),
  )
  return problem
    ? [warning('keychain', problem.detail, problem.hint)]
    : [ok('keychain', 'it has the key that seals the token files')]
}

const checkSealed = (
  provider: string,
  status: Status | undefined,
  need: NeededLogin | undefined,
  now: Date,
): Check[] => {
  const problem = findLoginProblem(status?.problems ?? [], provider)
  if (problem) return [error(provider, problem.detail, problem.hint)]
  const reported = status?.tokens.find((token) => token.provider === provider)
  if (!reported)
    return [skipped(provider, 'its token file is sealed: only the running daemon can read it')]
  const login = { ...reported, missingScopes: reported.missingScopes ?? [] }
  return checkLogin(provider, login, need, { isReported: true, now })
}

const unusable = ({ provider, is }: TokenFile): Check[] =>
  is === 'insecure'
    ? [skipped(provider, 'its token file is not read: see home')]
    : [
        error(
          provider,
          'its token file is damaged and cannot be read',
          `doorward oauth login ${provider}`,
        ),
      ]

const checkLogin = (
  provider: string,
  login: Login,
  need: NeededLogin | undefined,
  { isReported, now }: { readonly isReported: boolean; readonly now: Date },
): Check[] => {
  const again = `doorward oauth login ${provider}`
  if (login.status === 'needs-login')
    return [
      error(
        provider,
        login.ended === undefined
          ? 'its access token has expired and cannot be refreshed'
          : `the login has expired: ${login.ended}`,
        again,
      ),
    ]
  const words = expiryWords(login, now)
  const isStale = login.status === 'expired' && isReported
  return [
    isStale
      ? warning(provider, `${words}; the daemon could not refresh it yet`, 'doorward daemon logs')
      : ok(provider, words),
    ...checkScopes(provider, login, need, isReported),
  ]
}

const checkScopes = (
  provider: string,
  { scopes, missingScopes }: Login,
  need: NeededLogin | undefined,
  isReported: boolean,
): Check[] => {
  const name = `${provider} scopes`
  const lacks =
    need !== undefined &&
    need.anyOf.length > 0 &&
    // A token without scopes, as of a GitHub App, has other permissions.
    scopes.length > 0 &&
    !need.anyOf.some((scope) => scopes.includes(scope))
  if (lacks)
    return [
      error(
        name,
        `${need.anyOf.length === 1 ? 'not granted: ' : 'none is granted of '}${shortScopes(need.anyOf).join(', ')}, which ${need.by.join(', ')} needs`,
        loginCommand(provider, [...scopes, need.anyOf.at(0) ?? '']),
      ),
    ]
  if (missingScopes.length === 0) return []
  const shown = shortScopes(missingScopes).join(', ')
  return isReported
    ? [
        warning(
          name,
          `asked for and not granted: ${shown}`,
          loginCommand(provider, [...scopes, ...missingScopes]),
        ),
      ]
    : [skipped(name, `only the running daemon knows whether other scopes include ${shown}`)]
}

/** A token file without its tokens, or why it cannot be read. */
type TokenFile = {
  readonly provider: string
  readonly is: 'read' | 'sealed' | 'damaged' | 'insecure'
  readonly login?: Login
}

/** What is known of a login without the daemon; without `account`. */
type Login = Pick<TokenSummary, 'status' | 'expiresAt' | 'refreshable' | 'scopes'> & {
  /** Requested scopes that were not granted by name. */
  readonly missingScopes: readonly string[]
  readonly loginExpiresAt?: string
  /** Why the login expired, if the provider said. */
  readonly ended?: string
}

/** Reads the token files as the daemon does, and moves none of them. */
export const collectTokenFiles = async (home: Home, now: number): Promise<TokenFile[]> => {
  const names = await readdir(home.tokens).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'EACCES') return []
    throw error
  })
  const providers = names.flatMap(
    (name) => /^([\w@-]+)\.json(\.damaged-\w+)?$/.exec(name)?.[1] ?? [],
  )
  return Promise.all(
    [...new Set(providers)]
      .sort(compareLogins)
      .map(async (provider) => readOne(home, provider, now)),
  )
}

const readOne = async (home: Home, provider: string, now: number): Promise<TokenFile> => {
  try {
    const text = await readSecretFile(join(home.tokens, `${provider}.json`))
    if (text !== undefined && isSealed(text)) return { provider, is: 'sealed' }
    const login = text === undefined ? undefined : loginIn(text, now)
    return login ? { provider, is: 'read', login } : { provider, is: 'damaged' }
  } catch (error) {
    if (error instanceof DoorwardError) return { provider, is: 'insecure' }
    throw error
  }
}

const isSealed = (text: string): boolean => {
  try {
    return 'sealed' in (JSON.parse(text) as object)
  } catch {
    return false
  }
}

const loginIn = (text: string, now: number): Login | undefined => {
  try {
    const record = JSON.parse(text) as Readonly<Record<string, unknown>> | null
    if (record?.['version'] !== 1 || typeof record['accessToken'] !== 'string') return undefined
    const { expiresAt, ended, refreshExpiresAt } = record
    if (expiresAt !== null && typeof expiresAt !== 'string') return undefined
    const scopes = textsIn(record['scopes'])
    const isRenewable = typeof record['refreshToken'] === 'string'
    const isOver = typeof ended === 'object' && ended !== null
    const isFresh = expiresAt === null || Date.parse(expiresAt) > now
    const cause = isOver && 'cause' in ended ? ended.cause : undefined
    return {
      status: isOver ? 'needs-login' : isFresh ? 'ok' : isRenewable ? 'expired' : 'needs-login',
      expiresAt,
      refreshable: isRenewable && !isOver,
      scopes,
      missingScopes: textsIn(record['requestedScopes']).filter((scope) => !scopes.includes(scope)),
      ...(typeof refreshExpiresAt === 'string' && { loginExpiresAt: refreshExpiresAt }),
      ...(typeof cause === 'string' && { ended: cause }),
    }
  } catch {
    return undefined
  }
}

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []

type NeededLogin = {
  readonly provider: string
  /** The targets and agents that use it, as the configuration names them. */
  readonly by: readonly string[]
  /** One of these scopes is needed to deliver; empty for an agent, which may do anything. */
  readonly anyOf: readonly string[]
}

/** The logins that enabled webhooks need. */
export const neededLogins = (config: Config, defaults: DefaultAccounts = {}): NeededLogin[] => {
  const needed = new Map<string, { by: Set<string>; anyOf: readonly string[] }>()
  const need = (name: string, by: string, anyOf: readonly string[]) => {
    const provider = resolveLogin(name, defaults)
    const found = needed.get(provider) ?? { by: new Set(), anyOf }
    found.by.add(by)
    needed.set(provider, { by: found.by, anyOf: anyOf.length > 0 ? anyOf : found.anyOf })
  }
  for (const { agent, agentName, targets } of enabledRules(config)) {
    for (const { kind } of targets) {
      const { provider, anyOf } = findLogin(kind, config.gateway.targets) ?? {}
      if (provider !== undefined) need(provider, `target ${kind}`, anyOf ?? [])
    }
    for (const value of Object.values('env' in agent ? (agent.env ?? {}) : {}))
      if (value.startsWith('oauth:')) need(value.slice('oauth:'.length), `agent ${agentName}`, [])
  }
  return [...needed].map(([provider, { by, anyOf }]) => ({ provider, by: [...by], anyOf }))
}

const gmail = 'https://www.googleapis.com/auth/gmail'

/** The login that a kind of target uses when no variable has its token. */
export const findLogin = (
  kind: Target['kind'],
  targets: Config['gateway']['targets'],
): Pick<NeededLogin, 'provider' | 'anyOf'> | undefined => {
  switch (kind) {
    // docs.slack.dev/reference/methods/chat.postMessage
    case 'slack':
      return targets.slack.token_env === undefined
        ? { provider: targets.slack.login ?? 'slack', anyOf: ['chat:write'] }
        : undefined
    case 'github':
    case 'github-review':
    case 'github-check':
    case 'pull-request':
      return targets.github.token_env === undefined
        ? { provider: targets.github.login ?? 'github', anyOf: ['repo', 'public_repo'] }
        : undefined
    // docs.gitlab.com/api/notes
    case 'gitlab':
      return targets.gitlab.token_env === undefined
        ? { provider: targets.gitlab.login ?? 'gitlab', anyOf: ['api'] }
        : undefined
    // developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages/send
    case 'email':
      return targets.email.smtp_url_env === undefined
        ? {
            provider: targets.email.login ?? 'google',
            anyOf: [
              'https://mail.google.com/',
              `${gmail}.modify`,
              `${gmail}.compose`,
              `${gmail}.send`,
            ],
          }
        : undefined
    case 'none':
    case 'log':
    case 'notify':
    case 'file':
    case 'telegram':
    case 'discord':
    case 'http':
      return undefined
  }
}

/** Token endpoints of the built-in providers. */
const builtIn: Readonly<Record<string, string>> = {
  google: 'https://oauth2.googleapis.com/token',
  github: 'https://github.com/login/oauth/access_token',
  slack: 'https://slack.com/api/oauth.v2.access',
  microsoft: 'https://login.microsoftonline.com/common/oauth2/v2.0/token',
  gitlab: 'https://gitlab.com/oauth/token',
  linear: 'https://api.linear.app/oauth/token',
  notion: 'https://api.notion.com/v1/oauth/token',
  atlassian: 'https://auth.atlassian.com/oauth/token',
  discord: 'https://discord.com/api/oauth2/token',
  spotify: 'https://accounts.spotify.com/api/token',
  dropbox: 'https://api.dropboxapi.com/oauth2/token',
}

/** Checks whether these providers answer at all; sends no token. */
export const reachProviders = async (
  logins: readonly string[],
  entries: Readonly<Record<string, ProviderEntry>>,
): Promise<Reachable[]> =>
  Promise.all(
    [...new Set(logins.map(getProviderName))].map(async (name): Promise<Reachable> => {
      const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
      const known = Object.hasOwn(builtIn, name) ? builtIn[name] : undefined
      const endpoint = entry?.token_endpoint ?? entry?.issuer ?? known
      const title = `${name} endpoint`
      if (endpoint === undefined) return { check: skipped(title, 'gateway.yaml names none') }
      const { host, origin } = new URL(endpoint)
      const asked = await ask(new URL(origin), { method: 'HEAD' })
      if (asked.is === 'failed')
        return { check: error(title, `${host}: ${asked.why}`, 'check the network') }
      return {
        check: ok(title, `${host} answers`),
        ...(asked.skewMs === undefined ? {} : { skewMs: asked.skewMs }),
      }
    }),
  )
