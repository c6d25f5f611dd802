import { DoorwardError } from '../../../shared/errors.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import type { OneAtATime } from '../one-at-a-time.ts'
import { findClient } from '../provider/client-file.ts'
import type { Discover } from '../provider/discovery.ts'
import { type Provider, findProvider } from '../provider/providers.ts'
import { neverArrived } from '../provider/request-provider.ts'
import { type End, endCause } from './end-cause.ts'
import { refreshGrant } from './refresh-grant.ts'
import { forgetSent, noteSent, sentBefore } from './refresh-journal.ts'
import { readToken, writeToken } from './token-file.ts'
import { type TokenRecord, refreshedRecord } from './token-record.ts'

/**
 * Renews the access token of a provider, and returns the record that is then on the disk. Throws
 * `not-logged-in`, `needs-login`, `provider-unavailable`, `provider-refused`, or what is wrong with the
 * files and the configuration.
 */
export type Refresh = (provider: string) => Promise<TokenRecord>

/*
 * One refresh, in turn with the logins and logouts of its provider: read the file -> note in the journal
 * what is about to be sent -> ask the provider -> write the new record -> forget the note. Whoever waits
 * sees a token only once it is on the disk. If the process is killed in between, the note says so to the
 * next one, and the refresh token is simply tried again.
 */
export const createRefresh = (
  { home, gateway, env, log }: OAuthDependencies,
  discover: Discover,
  inTurn: OneAtATime,
  signal: AbortSignal,
  left: readonly TokenRecord[] = [],
) => {
  /** Records that a provider gave and the disk refused: the only place where they are. */
  const unsaved = new Map(left.map((record) => [record.provider, record]))

  const refresh: Refresh = (name) =>
    inTurn(name, async () => {
      const waiting = unsaved.get(name)
      if (waiting) return save(waiting)
      const record = await readToken(home, name)
      if (!record) throw notLoggedIn(name)
      if (record.refreshToken === undefined || record.ended) throw needsLogin(record)
      return renew(record, record.refreshToken)
    })

  const renew = async (record: TokenRecord, refreshToken: string): Promise<TokenRecord> => {
    const provider = findProvider(record.provider, gateway)
    // Only the client that the tokens were given to can renew them.
    const client = await findClient(home, provider, env, { clientId: record.clientId })
    const endpoints = await discover(provider, signal)
    const before = await sentBefore(home, provider.name, refreshToken)
    // The time of the first one: that is whose answer got lost.
    if (before === undefined) await noteSent(home, provider.name, refreshToken, Date.now())
    try {
      const answer = await refreshGrant(refreshToken, provider, client, endpoints, signal)
      const now = Date.now()
      if (answer.kind === 'grant') return await save(refreshedRecord(record, answer.grant, now))
      return await ended(provider, record, { ...answer, now, sentBefore: before })
    } catch (error) {
      // What was certainly not used up needs no note: an answer came, or nothing was sent.
      const isCertain = error instanceof DoorwardError && error.code !== 'provider-unavailable'
      if (
        before === undefined &&
        (neverArrived(error) || (isCertain && !unsaved.has(record.provider)))
      )
        await forgetSent(home, record.provider)
      throw error
    }
  }

  const save = async (record: TokenRecord): Promise<TokenRecord> => {
    unsaved.set(record.provider, record)
    await writeToken(home, record)
    unsaved.delete(record.provider)
    await forgetSent(home, record.provider)
    return record
  }

  /** Another program may have renewed it meanwhile; only if the file still has that token is it over. */
  const ended = async (provider: Provider, sent: TokenRecord, end: End): Promise<TokenRecord> => {
    const now = await readToken(home, provider.name)
    if (!now) throw notLoggedIn(provider.name)
    if (now.refreshToken !== sent.refreshToken) {
      log.info({ provider: provider.name }, 'another program has renewed the token')
      return now
    }
    const at = new Date(end.now).toISOString()
    const record = { ...now, ended: { at, cause: endCause(provider, now, end) } }
    await writeToken(home, record)
    await forgetSent(home, provider.name)
    throw needsLogin(record)
  }

  return {
    refresh,
    /** True while the newest tokens of a provider could not be written to the disk. */
    isUnsaved: (provider: string): boolean => unsaved.has(provider),
    unsaved: (provider: string): TokenRecord | undefined => unsaved.get(provider),
    unsavedProviders: (): string[] => [...unsaved.keys()],
    /** Lets go of them: a login or logout has made them void. */
    forgetUnsaved: (provider: string): void => void unsaved.delete(provider),
  }
}

/** There is no token of this provider. */
export const notLoggedIn = (provider: string): DoorwardError =>
  new DoorwardError('not-logged-in', `you are not logged in to ${provider}`, {
    hint: `doorward oauth login ${provider}`,
  })

/** The login is over, or cannot be renewed; says why. */
export const needsLogin = ({ provider, ended }: TokenRecord): DoorwardError =>
  new DoorwardError(
    'needs-login',
    ended
      ? `the login to ${provider} has ended: ${ended.cause}`
      : `the access token of ${provider} does not last as long as asked, and nothing can renew it`,
    { hint: `doorward oauth login ${provider}` },
  )
