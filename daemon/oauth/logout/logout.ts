import type { Logout } from '../../../shared/api.ts'
import { getProviderName } from '../../../shared/config/name-forms.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import type { KeyedMutex } from '../../util/concurrency.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import type { Revocation } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import {
  type Client,
  findClient,
  forgetClient,
  keepClientForAccounts,
} from '../providers/client-store.ts'
import type { Discover } from '../providers/discovery.ts'
import { findProvider } from '../providers/providers.ts'
import { notLoggedIn } from '../tokens/refresh.ts'
import type { TokenBroker } from '../tokens/token-broker.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import { readAccounts, readToken, removeToken } from '../tokens/token-store.ts'
import { getLastDay, type RevocationQueue } from './revocation-queue.ts'
import {
  describeManualWay,
  getAllowedExtent,
  getExtentBeside,
  notAsked,
  revoke,
  toPendingRevocation,
} from './revoke.ts'

/**
 * Logs out of a provider; with `forget` it forgets the OAuth client too. Throws `not-logged-in`,
 * `token-file-insecure` or `home-unusable`.
 */
export type LogOut = (provider: string, forget: boolean) => Promise<Logout>

type LogoutServices = {
  readonly dependencies: OAuthDependencies
  readonly discover: Discover
  readonly revocations: RevocationQueue
  readonly withLock: KeyedMutex
  readonly tokens: Pick<TokenBroker, 'changed' | 'unsaved'>
  /** Aborts requests to the provider when the daemon stops. */
  readonly signal: AbortSignal
}

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
  const { revokedAtProvider, detail } = record
    ? await revokeAndRemove(services, record)
    : await removeDamaged(services, provider)
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

const removeDamaged = async (
  { dependencies: { home, gateway } }: LogoutServices,
  provider: string,
): Promise<Revocation> => {
  await removeToken(home, provider)
  const manualWay = describeManualWay(provider, gateway)
  return {
    revokedAtProvider: false,
    detail: `the token file was damaged, so that nothing could be revoked; you can revoke the access ${manualWay}`,
  }
}

const revokeAndRemove = async (
  services: LogoutServices,
  record: TokenRecord,
): Promise<Revocation> => {
  const { home, gateway } = services.dependencies
  const { provider } = record
  if (record.importedFrom !== undefined) {
    await removeToken(home, provider)
    return {
      revokedAtProvider: false,
      detail: `nothing was revoked, because ${record.importedFrom} uses this token too; you can revoke the access ${describeManualWay(provider, gateway)}`,
    }
  }
  const { revocation, client } = await revokeGrant(services, record)
  if (revocation.revokedAtProvider) {
    await removeToken(home, provider)
    return revocation
  }
  const why = revocation.detail ?? 'not revoked'
  const manually = `you can revoke the access ${describeManualWay(provider, gateway)}`
  if (!revocation.isWorthRetry || !client) {
    await removeToken(home, provider)
    return { revokedAtProvider: false, detail: `${why}; ${manually}` }
  }
  const pending = { ...toPendingRevocation(record, client, 'grant'), lastFailure: why }
  const name = await services.revocations.keep(pending)
  try {
    await removeToken(home, provider)
  } catch (error) {
    // The login continues if its file is still there, and needs its tokens.
    if (name !== undefined && (await readToken(home, provider).catch(() => record)))
      await services.revocations.forget(name)
    throw error
  }
  const next =
    name === undefined
      ? `it is not tried again, since nothing can be written to the disk; ${manually}`
      : `it is tried again until ${getLastDay(Date.now())}, or ${manually}`
  return { revokedAtProvider: false, detail: `${why}; ${next}` }
}

/** The result where a revocation would end these logins too, which are of the same account. */
const endsOthers = (title: string, others: readonly TokenRecord[]): Revocation => ({
  revokedAtProvider: false,
  detail: `not revoked: at ${title} that would end ${others.map(({ provider }) => provider).join(', ')} too`,
})

type RevokedGrant = { readonly revocation: Revocation; readonly client: Client | undefined }

const revokeGrant = async (
  { dependencies, discover, signal }: LogoutServices,
  record: TokenRecord,
): Promise<RevokedGrant> => {
  const { home, gateway, env } = dependencies
  try {
    const provider = findProvider(record.provider, gateway)
    // Only the client that got the tokens can revoke them.
    const client = await findClient(home, provider, env, { clientId: record.clientId })
    const pending = toPendingRevocation(record, client, 'grant')
    const accounts = await readAccounts(home, provider.name).catch(() => [])
    const others = accounts.filter((other) => other.provider !== provider.name)
    const dialect = getDialect(provider)
    const extent = getExtentBeside(pending, others, dialect)
    const ending = others.filter((other) => !getAllowedExtent(pending, other, dialect))
    if (extent === undefined) return { revocation: endsOthers(provider.title, ending), client }
    const revocation = await revoke(discover, provider, { ...pending, extent }, signal)
    return { revocation, client }
  } catch (error) {
    return { revocation: notAsked(error), client: undefined }
  }
}
