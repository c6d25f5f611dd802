import { listSecrets } from '../../shared/config/environment.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { OAuth } from '../oauth/oauth.ts'
import { DeliveryError, TokenRefused } from './delivery-error.ts'

export type TokenSource = {
  /** What the target is called in messages. */
  readonly target: string
  /** The variable that holds a token; else the login of the provider is used. */
  readonly tokenEnv: string | undefined
  readonly provider: string | undefined
  readonly env: NodeJS.ProcessEnv
  readonly access: OAuth['access']
}

/** No token lives so long: whoever asks for this gets a new one, where it can be renewed. */
const longerThanAnyMs = 30 * 24 * 60 * 60 * 1000

/**
 * Calls with a token. A login's token that is refused (`TokenRefused`) is asked for once more, renewed.
 * Throws `DeliveryFailed` when there is none, or none that is taken: `needs-login` where a login mends it.
 */
export const withToken = async <Value>(
  { target, tokenEnv, provider, env, access }: TokenSource,
  call: (token: string) => Promise<Value>,
): Promise<Value> => {
  if (tokenEnv !== undefined || provider === undefined)
    return withFixedToken(target, tokenEnv, env, call)
  const asker = `target ${target}`
  const { accessToken } = await brokered(access(provider, { asker }))
  try {
    return await call(accessToken)
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
  }
  const renewed = await brokered(access(provider, { asker, minValidityMs: longerThanAnyMs }))
  if (renewed.accessToken === accessToken) throw needsLogin(target, provider)
  try {
    return await call(renewed.accessToken)
  } catch (error) {
    throw error instanceof TokenRefused ? needsLogin(target, provider) : error
  }
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
      'refused',
      `${target} has no token: ${tokenEnv ?? `targets.${target}.token_env`} is unset`,
      { hint: 'set it in .env: doorward config edit env' },
    )
  // Anything else is no value of a header, and no part of a path.
  const isToken = /^[\x21-\x7e]+$/.test(token.trim())
  try {
    if (!isToken) throw new TokenRefused()
    return await call(token.trim())
  } catch (error) {
    if (!(error instanceof TokenRefused)) throw error
    throw new DeliveryError('refused', `${target} refused the token in ${tokenEnv}`, {
      hint: `put a valid one into ${tokenEnv} in .env: doorward config edit env`,
    })
  }
}

const brokered = async <Value>(token: Promise<Value>): Promise<Value> => {
  try {
    return await token
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    const { code, message, hint, retryAfterMs } = error
    // Nothing was sent yet, and a provider that is away comes back.
    const fate = code === 'provider-unavailable' ? 'later' : 'refused'
    throw new DeliveryError(fate, message, { code, hint, retryAfterMs })
  }
}

const needsLogin = (target: string, provider: string) =>
  new DeliveryError('refused', `${target} refused the token of the login of ${provider}`, {
    code: 'needs-login',
    hint: `doorward oauth login ${provider}`,
  })
