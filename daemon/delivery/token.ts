import { listSecrets } from '../../shared/config/environment.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Tokens } from '../oauth/dependencies.ts'
import { DeliveryError, TokenRefused } from './delivery-error.ts'

export type TokenSource = {
  /** Its name in messages. */
  readonly target: string
  /** The variable with a token; without it the login of the provider is used. */
  readonly tokenEnv: string | undefined
  readonly provider: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly access: Tokens['access']
  readonly grant?: Grant
  /** Nobody has chosen the login. */
  readonly isDefault?: boolean
}

/** What the token of a bot is for: one repository (`owner/name`), and the permissions of one step. */
export type Grant = {
  readonly repository: string
  readonly permissions: Readonly<Record<string, 'read' | 'write'>>
  /** The API that gets it. */
  readonly apiUrl?: string
}

/** A login that is needed, and scopes of which it has one; any will do where there are none. */
export type NeededToken = { readonly provider: string; readonly anyOf: readonly string[] }

/** What a target needs that uses this token. */
export const needsOf = (
  { tokenEnv, provider }: TokenSource,
  anyOf: readonly string[],
): NeededToken | undefined =>
  tokenEnv !== undefined || provider === undefined ? undefined : { provider, anyOf }

/** Longer than any token is valid, which forces a refresh. */
const forceRefreshMs = 30 * 24 * 60 * 60 * 1000

/**
 * Calls with a token; after `TokenRefused` again with a refreshed one, where the token is a login's. Throws
 * `DeliveryError` when there is no token or the target refuses it: `needs-login` where a login fixes that.
 */
export const withToken = async <Value>(
  { target, tokenEnv, provider, env, access, grant }: TokenSource,
  call: (token: string) => Promise<Value>,
): Promise<Value> => {
  if (tokenEnv !== undefined || provider === undefined)
    return withFixedToken(target, tokenEnv, env, call)
  const asker = `target ${target}`
  const { accessToken, provider: login } = await toDeliveryErrors(
    access(provider, { ...grant, asker }),
  )
  try {
    return await call(accessToken)
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
  }
  const refreshed = await toDeliveryErrors(
    access(provider, { ...grant, asker, minValidityMs: forceRefreshMs }),
  )
  if (refreshed.accessToken === accessToken) throw needsLogin(target, login)
  try {
    return await call(refreshed.accessToken)
  } catch (error) {
    throw error instanceof TokenRefused ? needsLogin(target, login) : error
  }
}

/** Parses a variable of the owner. Throws `DeliveryError` when it is unset, or is not `what`. */
export const readVariable = <Value>(
  name: string,
  env: NodeJS.ProcessEnv,
  what: string,
  parse: (text: string) => Value | undefined,
): Value => {
  const [text] = listSecrets([name], env)
  const value = text === undefined ? undefined : parse(text)
  if (value !== undefined) return value
  throw new DeliveryError(
    'permanent',
    `${name} is ${text === undefined ? 'unset' : `not ${what}`}`,
    { hint: `set ${name} in .env to ${what}: doorward config edit env` },
  )
}

const withFixedToken = async <Value>(
  target: string,
  tokenEnv: string | undefined,
  env: NodeJS.ProcessEnv,
  call: (token: string) => Promise<Value>,
): Promise<Value> => {
  const [token] = tokenEnv === undefined ? [] : listSecrets([tokenEnv], env)
  if (tokenEnv === undefined || token === undefined)
    throw new DeliveryError(
      'permanent',
      `${target} has no token: ${tokenEnv ?? `targets.${target}.token_env`} is unset`,
      { hint: 'set it in .env: doorward config edit env' },
    )
  // Safe in a header and in a path.
  const isToken = /^[\x21-\x7e]+$/.test(token.trim())
  try {
    if (!isToken) throw new TokenRefused()
    return await call(token.trim())
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
    throw new DeliveryError('permanent', `${target} refused the token in ${tokenEnv}`, {
      hint: `set ${tokenEnv} in .env to a valid one: doorward config edit env`,
    })
  }
}

const toDeliveryErrors = async <Value>(token: Promise<Value>): Promise<Value> => {
  try {
    return await token
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    const { code, message, hint, about, retryAfterMs } = error
    const retryability = code === 'provider-unavailable' ? 'retryable' : 'permanent'
    throw new DeliveryError(retryability, message, { code, hint, about, retryAfterMs })
  }
}

const needsLogin = (target: string, provider: string) =>
  new DeliveryError('permanent', `${target} refused the token of the ${provider} login`, {
    code: 'needs-login',
    hint: `doorward oauth login ${provider}`,
    about: { provider, target },
  })
