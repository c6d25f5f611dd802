import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Status, TokenSummary } from '../../../../shared/api.ts'
import { listSecrets } from '../../../../shared/config/environment.ts'
import type { Config } from '../../../../shared/config/load.ts'
import type { Target } from '../../../../shared/config/targets.ts'
import { DoorwardError, systemCode } from '../../../../shared/errors.ts'
import { type Home, readSecretFile } from '../../../../shared/home/home.ts'
import { expiryWords, loginCommand, shortScopes } from '../../oauth/list.ts'
import { type Check, checksFor } from '../check.ts'
import type { ConfigurationFacts } from './configuration.ts'

const { ok, warning, error, skipped } = checksFor('logins')

/** The provider's logins: fresh, complete, and there where something needs them. */
export const judgeLogins = (
  files: readonly TokenFile[],
  status: Status | undefined,
  { config, env }: Pick<ConfigurationFacts, 'config' | 'env'>,
  now: Date,
): Check[] => {
  const needed = config ? neededLogins(config) : []
  const found = files.flatMap((file) => {
    const told = status?.tokens.find(({ provider }) => provider === file.provider)
    const need = needed.find(({ provider }) => provider === file.provider)
    if (file.is !== 'read' || !file.login) return unusable(file)
    // The daemon knows which scopes hold others.
    const login = told
      ? { ...file.login, ...told, missingScopes: told.missingScopes ?? [] }
      : file.login
    return ofLogin(file.provider, login, need, { isTold: told !== undefined, now })
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
              `${variable} is unset or empty: its logins go without a client secret`,
              `set ${variable} in .env: doorward config edit env`,
            ),
          ]
        : [],
  )
  const all = [...found, ...missing, ...clients]
  return all.length > 0 ? all : [skipped('logins', 'logged in nowhere, and nothing here needs it')]
}

const unusable = ({ provider, is }: TokenFile): Check[] =>
  is === 'insecure'
    ? [skipped(provider, 'its token file may not be read as it is: see home')]
    : [
        error(
          provider,
          'its token file is damaged and cannot be read',
          `doorward oauth login ${provider}`,
        ),
      ]

const ofLogin = (
  provider: string,
  login: Login,
  need: NeededLogin | undefined,
  { isTold, now }: { readonly isTold: boolean; readonly now: Date },
): Check[] => {
  const again = `doorward oauth login ${provider}`
  if (login.status === 'needs-login')
    return [
      error(
        provider,
        login.ended === undefined
          ? 'its access token has expired, and nothing can renew it'
          : `the login has ended: ${login.ended}`,
        again,
      ),
    ]
  const words = expiryWords(login, now)
  const isStale = login.status === 'expired' && isTold
  return [
    isStale
      ? warning(provider, `${words}; the daemon could not renew it yet`, 'doorward daemon logs')
      : ok(provider, words),
    ...checkScopes(provider, login, need, isTold),
  ]
}

const checkScopes = (
  provider: string,
  { scopes, missingScopes }: Login,
  need: NeededLogin | undefined,
  isTold: boolean,
): Check[] => {
  const name = `${provider} scopes`
  const lacks =
    need !== undefined &&
    need.anyOf.length > 0 &&
    // One that names no scope does not grant by them, as GitHub's Apps.
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
  return isTold
    ? [
        warning(
          name,
          `asked for and not granted: ${shown}`,
          loginCommand(provider, [...scopes, ...missingScopes]),
        ),
      ]
    : [skipped(name, `whether ${shown} is held by others, only the running daemon knows`)]
}

/** What a token file says of its login, or why it says nothing. Never a token. */
type TokenFile = {
  readonly provider: string
  readonly is: 'read' | 'damaged' | 'insecure'
  readonly login?: Login
}

/** The part of a login that can be known without the daemon; `account` is left out. */
type Login = Pick<TokenSummary, 'status' | 'expiresAt' | 'refreshable' | 'scopes'> & {
  /** What was asked for and not granted by name. */
  readonly missingScopes: readonly string[]
  readonly loginExpiresAt?: string
  /** Why it is over, where the provider said so. */
  readonly ended?: string
}

/** Reads the token files as the daemon would, and moves none of them. */
export const lookAtTokenFiles = async (home: Home, now: number): Promise<TokenFile[]> => {
  const names = await readdir(home.tokens).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT' || systemCode(error) === 'EACCES') return []
    throw error
  })
  const providers = names.flatMap(
    (name) => /^([\w-]+)\.json(\.damaged-\w+)?$/.exec(name)?.[1] ?? [],
  )
  return Promise.all(
    [...new Set(providers)].sort().map(async (provider) => readOne(home, provider, now)),
  )
}

const readOne = async (home: Home, provider: string, now: number): Promise<TokenFile> => {
  try {
    const text = await readSecretFile(join(home.tokens, `${provider}.json`))
    const login = text === undefined ? undefined : loginIn(text, now)
    return login ? { provider, is: 'read', login } : { provider, is: 'damaged' }
  } catch (error) {
    if (error instanceof DoorwardError) return { provider, is: 'insecure' }
    throw error
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
  /** What uses it: targets and agents, as the configuration names them. */
  readonly by: readonly string[]
  /** Scopes of which one is needed to deliver; none for an agent, which may do anything. */
  readonly anyOf: readonly string[]
}

/** The logins that what is enabled cannot do without. */
export const neededLogins = ({ webhooks, gateway }: Config): NeededLogin[] => {
  const needed = new Map<string, { by: Set<string>; anyOf: readonly string[] }>()
  const need = (provider: string, by: string, anyOf: readonly string[]) => {
    const found = needed.get(provider) ?? { by: new Set(), anyOf }
    found.by.add(by)
    needed.set(provider, { by: found.by, anyOf: anyOf.length > 0 ? anyOf : found.anyOf })
  }
  for (const { enabled, agent, agentName, targets } of webhooks) {
    if (!enabled) continue
    for (const { kind } of targets) {
      const { provider, anyOf } = findLogin(kind, gateway.targets) ?? {}
      if (provider !== undefined) need(provider, `target ${kind}`, anyOf ?? [])
    }
    for (const value of Object.values('env' in agent ? (agent.env ?? {}) : {}))
      if (value.startsWith('oauth:')) need(value.slice('oauth:'.length), `agent ${agentName}`, [])
  }
  return [...needed].map(([provider, { by, anyOf }]) => ({ provider, by: [...by], anyOf }))
}

const gmail = 'https://www.googleapis.com/auth/gmail'

/** The login by which a kind of target is delivered to, where no variable holds its token. */
export const findLogin = (
  kind: Target['kind'],
  targets: Config['gateway']['targets'],
): Pick<NeededLogin, 'provider' | 'anyOf'> | undefined => {
  switch (kind) {
    // docs.slack.dev/reference/methods/chat.postMessage
    case 'slack':
      return targets.slack.token_env === undefined
        ? { provider: 'slack', anyOf: ['chat:write'] }
        : undefined
    case 'github':
      return targets.github.token_env === undefined
        ? { provider: 'github', anyOf: ['repo', 'public_repo'] }
        : undefined
    // developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages/send
    case 'email':
      return targets.email.smtp_url_env === undefined
        ? {
            provider: 'google',
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
