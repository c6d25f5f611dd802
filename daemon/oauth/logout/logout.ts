import type { Logout } from '../../../shared/api/api.ts'
import { getProviderName } from '../../../shared/config/name-forms.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import type { Revocation } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import { findClient, forgetClient, keepClientForAccounts } from '../providers/client-store.ts'
import { findServerError, withServer } from '../providers/login-server.ts'
import { findProvider } from '../providers/providers.ts'
import type { OAuthServices } from '../services.ts'
import { notLoggedIn } from '../tokens/refresh.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import { readAccounts, readToken, removeToken } from '../tokens/token-store.ts'
import { type PendingRevocation, removePending } from './revocation-store.ts'
import { getLastDay } from './revocations.ts'
import { describeManualWay, getEndedBy, notAsked, revoke, toPendingRevocation } from './revoke.ts'

/** The signal aborts requests to the provider when the daemon stops. */
type LogoutServices = OAuthServices & { readonly signal: AbortSignal }

/**
 * Logs out of a provider; with `forget` it forgets the OAuth client too. Throws `not-logged-in`,
 * `token-file-insecure` or `home-unusable`.
 */
export type LogOut = (provider: string, forget: boolean) => Promise<Logout>

/*
 * One logout: revoke at the provider -> where it cannot be reached, keep the tokens in a file for later
 * attempts -> remove the token file -> answer. A daemon that is killed in between leaves the tokens in at
 * least one of the two files.
 */
export const createLogOut =
  (services: LogoutServices): LogOut =>
  (provider, forget) =>
    services.withLock(provider, async () => {
      const { home } = services.dependencies
      try {
        const answer = await logOut(services, provider)
        if (forget) await forgetLoginClient(home, provider)
        return answer
      } catch (error) {
        const isLoggedOut = error instanceof DoorwardError && error.code === 'not-logged-in'
        if (!isLoggedOut || !forget || !(await forgetLoginClient(home, provider))) throw error
        throw new DoorwardError(error.code, `${error.message}; its OAuth client is forgotten`, {
          cause: error,
          hint: error.hint,
        })
      }
    })

/** True when there was a client. Other accounts that use it keep a copy: they are still logged in. */
const forgetLoginClient = async (home: Home, login: string): Promise<boolean> => {
  const accounts = await readAccounts(home, login).catch(() => [])
  if (getProviderName(login) === login) await keepClientForAccounts(home, login, accounts)
  return forgetClient(home, login)
}

const logOut = async (services: LogoutServices, provider: string): Promise<Logout> => {
  const { log, announce } = services.dependencies
  const record = await readRecord(services, provider)
  const revoked = await revokeLogin(services, record)
  const login = { provider, server: record?.server }
  const { revokedAtProvider, detail } = await removeLogin(services, login, revoked)
  services.tokens.changed(provider)
  log.info({ provider, revokedAtProvider }, 'logged out')
  announce({ what: 'logout', provider, state: 'done', ...(detail ? { detail } : {}) })
  return { provider, removed: true, revokedAtProvider, ...(detail && { detail }) }
}

/** Undefined for a damaged file. */
const readRecord = async (
  { dependencies: { home }, tokens }: LogoutServices,
  provider: string,
): Promise<TokenRecord | undefined> => {
  try {
    const record = tokens.unsaved(provider) ?? (await readToken(home, provider))
    if (record) return record
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'token-file-damaged') return undefined
    throw error
  }
  const { code, message } = notLoggedIn(provider)
  throw new DoorwardError(code, message)
}

type RevokedLogin = {
  readonly revocation: Revocation
  /** The revocation to try again later. */
  readonly pending?: PendingRevocation
}

const notRevoked = (detail: string): RevokedLogin => ({
  revocation: { revokedAtProvider: false, detail },
})

const revokeLogin = async (
  { dependencies, discover, signal }: LogoutServices,
  record: TokenRecord | undefined,
): Promise<RevokedLogin> => {
  const { home, gateway, env } = dependencies
  if (!record) return notRevoked('the token file was damaged, so that nothing could be revoked')
  if (record.importedFrom !== undefined)
    return notRevoked(`nothing was revoked, because ${record.importedFrom} uses this token too`)
  const error = findServerError(record, gateway)
  if (error) return notRevoked(`nothing was revoked, because ${error.message}`)
  try {
    const provider = findProvider(record.provider, gateway)
    // Only the client that got the tokens can revoke them.
    const client = await findClient(home, provider, env, { clientId: record.clientId })
    const pending = toPendingRevocation(withServer(record, gateway), client, 'grant')
    const accounts = await readAccounts(home, provider.name).catch(() => [])
    const others = accounts.filter((other) => other.provider !== provider.name)
    const ended = getEndedBy(pending, others, getDialect(provider)).map((other) => other.provider)
    if (ended.length > 0)
      return notRevoked(`not revoked: at ${provider.title} that would end ${ended.join(', ')} too`)
    return { revocation: await revoke(discover, provider, pending, others, signal), pending }
  } catch (error) {
    return { revocation: notAsked(error) }
  }
}

/** Keeps for later what could not be revoked, and removes the token file. */
const removeLogin = async (
  { dependencies: { home, gateway }, revocations }: LogoutServices,
  login: Pick<TokenRecord, 'provider' | 'server'>,
  { revocation, pending }: RevokedLogin,
): Promise<Revocation> => {
  const { provider } = login
  if (revocation.revokedAtProvider) {
    await removeToken(home, provider)
    return revocation
  }
  const why = revocation.detail ?? 'not revoked'
  const manually = `you can revoke the access ${describeManualWay(login, gateway)}`
  if (!revocation.isWorthRetry || !pending) {
    await removeToken(home, provider)
    return { revokedAtProvider: false, detail: `${why}; ${manually}` }
  }
  const name = await revocations.keep({ ...pending, lastFailure: why })
  try {
    await removeToken(home, provider)
  } catch (error) {
    // The login continues if its file is still there, and needs its tokens.
    if (name !== undefined && (await readToken(home, provider).catch(() => true)))
      await removePending(home, name)
    throw error
  }
  const next =
    name === undefined
      ? `it is not tried again, since nothing can be written to the disk; ${manually}`
      : `it is tried again until ${getLastDay(Date.now())}, or ${manually}`
  return { revokedAtProvider: false, detail: `${why}; ${next}` }
}
