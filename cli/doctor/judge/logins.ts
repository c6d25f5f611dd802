import type { Status } from '../../../shared/api.ts'
import { secretsOf } from '../../../shared/config/environment.ts'
import { expiryWords } from '../../show-expiry.ts'
import { loginCommand, shortScopes } from '../../show-scopes.ts'
import { type Check, checksOf } from '../check.ts'
import type { ConfigurationFacts } from '../look/configuration.ts'
import type { Login, TokenFile } from '../look/token-files.ts'
import { type NeededLogin, neededLogins } from './needed-logins.ts'

const { ok, warning, error, skipped } = checksOf('logins')

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
      variable !== undefined && secretsOf([variable], env).length === 0
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
    ...scopesOf(provider, login, need, isTold),
  ]
}

const scopesOf = (
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
