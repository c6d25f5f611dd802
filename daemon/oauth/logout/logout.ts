import type { Logout } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { OAuthDependencies, Tokens } from '../dependencies.ts'
import type { Revocation } from '../dialects/dialect.ts'
import type { KeyedMutex } from '../../util/concurrency.ts'
import { type Client, findClient, forgetClient } from '../providers/client-store.ts'
import { findProvider } from '../providers/providers.ts'
import { withTimeLimit } from '../../util/abort.ts'
import { readToken, removeToken } from '../tokens/token-store.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import { type PendingRevocation, giveUpDate } from './revocation-store.ts'
import type { RevocationQueue } from './revocation-queue.ts'
import { type RevokeGrant, byHand, notAsked } from './revoke.ts'

export type LogOut = (provider: string, forget: boolean) => Promise<Logout>

type Parts = {
  readonly dependencies: OAuthDependencies
  readonly revokeGrant: RevokeGrant
  readonly revocations: RevocationQueue
  readonly inTurn: KeyedMutex
  readonly broker: Pick<Tokens, 'changed' | 'unsaved'>
}

/** Somebody waits for the answer; a provider that takes longer is asked again in the background. */
const limitMs = 10_000

/*
 * One logout. The tokens are taken back at the provider; where it cannot be reached, they are put beside
 * for later tries. Then the token file goes, whatever the provider said, and only then the answer says
 * `removed`. With `forget` the remembered client goes too. A daemon that is killed in between leaves the
 * tokens in one of the two files, or in both.
 */
export const createLogOut = (
  { dependencies, revokeGrant, revocations, inTurn, broker }: Parts,
  signal: AbortSignal,
): LogOut => {
  const { home, gateway, env, log, announce } = dependencies

  const logOut = async (provider: string): Promise<Logout> => {
    const record = await readRecord(provider)
    const { revokedAtProvider, detail } = record
      ? await revokeAndRemove(record)
      : await removeDamaged(provider)
    broker.changed(provider)
    log.info({ provider, revokedAtProvider }, 'logged out')
    announce({ what: 'logout', provider, state: 'done', ...(detail ? { detail } : {}) })
    return { provider, removed: true, revokedAtProvider, ...(detail && { detail }) }
  }

  /** Undefined for a file that is damaged. Throws `not-logged-in`, or `token-file-insecure` with what mends it. */
  const readRecord = async (provider: string): Promise<TokenRecord | undefined> => {
    try {
      const record = broker.unsaved(provider) ?? (await readToken(home, provider))
      if (record) return record
    } catch (error) {
      if (error instanceof DoorwardError && error.code === 'token-file-damaged') return undefined
      throw error
    }
    throw new DoorwardError('not-logged-in', `you are not logged in to ${provider}`)
  }

  const revokeAndRemove = async (record: TokenRecord): Promise<Revocation> => {
    const { revocation, client } = await revoke(record)
    if (revocation.revokedAtProvider) {
      await removeToken(home, record.provider)
      return revocation
    }
    const why = revocation.detail ?? 'not revoked'
    const page = byHand(record.provider, gateway)
    if (!revocation.isWorthRetry || !client) {
      await removeToken(home, record.provider)
      return { revokedAtProvider: false, detail: `${why}; you can revoke the access ${page}` }
    }
    const now = Date.now()
    const name = await revocations.keep(triedInVain(record, client, why, now))
    try {
      await removeToken(home, record.provider)
    } catch (error) {
      // A login that goes on keeps its tokens; where the file is gone, they are still to be revoked.
      if (await readToken(home, record.provider).catch(() => record)) await revocations.forget(name)
      throw error
    }
    const until = revocations.isOnDisk(name)
      ? `it is tried again until ${giveUpDate(now)}`
      : 'it is tried again while this daemon runs, since nothing can be written to the disk'
    return {
      revokedAtProvider: false,
      detail: `${why}; ${until}, or you can revoke the access ${page}`,
    }
  }

  const revoke = async (record: TokenRecord) => {
    try {
      const provider = findProvider(record.provider, gateway)
      // Only the client that the tokens were given to can take them back.
      const client = await findClient(home, provider, env, { clientId: record.clientId })
      const { accessToken, refreshToken } = record
      const what = { tokens: { accessToken, refreshToken }, extent: 'grant' } as const
      const revocation = await withTimeLimit(limitMs, signal, (limited) =>
        revokeGrant(provider, client, what, limited),
      )
      return { revocation, client }
    } catch (error) {
      return { revocation: notAsked(error), client: undefined }
    }
  }

  const removeDamaged = async (provider: string): Promise<Revocation> => {
    await removeToken(home, provider)
    const page = byHand(provider, gateway)
    return {
      revokedAtProvider: false,
      detail: `the token file was damaged, so that nothing could be revoked; you can revoke the access ${page}`,
    }
  }

  return (provider, forget) =>
    inTurn(provider, async () => {
      try {
        const answer = await logOut(provider)
        if (forget) await forgetClient(home, provider)
        return answer
      } catch (error) {
        const isLoggedOut = error instanceof DoorwardError && error.code === 'not-logged-in'
        if (!isLoggedOut || !forget || !(await forgetClient(home, provider))) throw error
        throw new DoorwardError(error.code, `${error.message}; its OAuth client is forgotten`, {
          cause: error,
          hint: error.hint,
        })
      }
    })
}

const triedInVain = (
  { provider, accessToken, refreshToken, account }: TokenRecord,
  client: Client,
  lastFailure: string,
  now: number,
): PendingRevocation => ({
  version: 1,
  provider,
  tokens: { accessToken, refreshToken },
  client,
  account,
  extent: 'grant',
  since: new Date(now).toISOString(),
  attempts: 1,
  lastFailure,
})
