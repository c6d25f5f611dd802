import {
  processRefreshTokenResponse,
  refreshTokenGrantRequest,
  ResponseBodyError,
} from 'oauth4webapi'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import type { KeyedMutex } from '../../util/concurrency.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { getDialect } from '../dialects/dialects.ts'
import { standardAnswer, tokenRequestOptions } from '../dialects/token-endpoint.ts'
import { clientAuthentication } from '../providers/client-proof.ts'
import { type Client, findClient } from '../providers/client-store.ts'
import type { Discover, Endpoints } from '../providers/discovery.ts'
import { explain, getOAuthError, providerError } from '../providers/errors.ts'
import { requireSameServer, withServer } from '../providers/login-server.ts'
import { findProvider, type Provider } from '../providers/providers.ts'
import { neverArrived } from '../providers/request.ts'
import { type Grant, toGrant, refreshedRecord, type TokenRecord } from './token-record.ts'
import { readToken, writeToken } from './token-store.ts'
import { createHash } from 'node:crypto'
import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import { writeFileAtomic } from '../../../shared/home/files.ts'

/** A refresh token that was sent without an answer being saved: the provider may have used it up. */
type SentRefresh = {
  readonly sentAt: string
  readonly refreshTokenSha256: string
}

const journalSchema = z.object({ sentAt: z.iso.datetime(), refreshTokenSha256: z.string() })

/**
 * Writes to the journal that this refresh token is about to be sent: its hash only. It is on the disk when
 * this returns. Throws `home-unusable`: then the token must not be sent.
 */
export const noteSent = async (
  home: Home,
  provider: string,
  refreshToken: string,
  sentAt: number,
): Promise<void> => {
  const entry: SentRefresh = {
    sentAt: new Date(sentAt).toISOString(),
    refreshTokenSha256: hashToken(refreshToken),
  }
  try {
    await writeFileAtomic(getPath(home, provider), `${JSON.stringify(entry)}\n`)
  } catch (error) {
    throw new DoorwardError(
      'home-unusable',
      `cannot write to ${home.tokens} (${systemCode(error)}), so the token of ${provider} is not renewed`,
      { cause: error, hint: 'make the folder writable for you and see that the disk is not full' },
    )
  }
}

/** When this refresh token was sent without an answer being saved, or undefined if it was not. */
export const sentBefore = async (
  home: Home,
  provider: string,
  refreshToken: string,
): Promise<string | undefined> => {
  try {
    const text = await readSecretFile(getPath(home, provider))
    if (text === undefined) return undefined
    const { sentAt, refreshTokenSha256 } = journalSchema.parse(JSON.parse(text))
    return refreshTokenSha256 === hashToken(refreshToken) ? sentAt : undefined
  } catch {
    // The journal only explains an error, so it may be unreadable.
    return undefined
  }
}

/** Removes the journal. If that fails it does no harm: its refresh token is no longer the stored one. */
export const forgetSent = async (home: Home, provider: string): Promise<void> => {
  await unlink(getPath(home, provider)).catch(() => undefined)
}

const getPath = (home: Home, provider: string): string =>
  join(home.tokens, `${provider}.json.refresh`)

const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')

/**
 * Refreshes the access token of a provider and returns the record that is then on the disk. Throws
 * `not-logged-in`, `needs-login`, `provider-unavailable`, `provider-refused`, or an error of the files or
 * the configuration.
 */
export type Refresh = (provider: string) => Promise<TokenRecord>

/*
 * One refresh, under the lock of its provider: read the file -> write the journal -> ask the provider ->
 * write the new record -> remove the journal. A token is returned only once it is on the disk. If the
 * process is killed in between, the next one finds the journal and sends the same refresh token again.
 */
export const createRefresh = (
  { home, gateway, env, log }: OAuthDependencies,
  discover: Discover,
  withLock: KeyedMutex,
  signal: AbortSignal,
  previous: readonly TokenRecord[] = [],
) => {
  /** New tokens that the disk refused: they exist nowhere else. */
  const unsaved = new Map(previous.map((record) => [record.provider, record]))

  const refresh: Refresh = (name) =>
    withLock(name, async () => {
      const waiting = unsaved.get(name)
      if (waiting) return save(withServer(waiting, gateway))
      const record = await readToken(home, name)
      if (!record) throw notLoggedIn(name)
      if (record.refreshToken === undefined || record.ended) throw needsLogin(record)
      return send(withServer(record, gateway), record.refreshToken)
    })

  const send = async (record: TokenRecord, refreshToken: string): Promise<TokenRecord> => {
    requireSameServer(record, gateway)
    const provider = findProvider(record.provider, gateway)
    // Only the client that got the tokens can refresh them.
    const client = await findClient(home, provider, env, { clientId: record.clientId })
    const endpoints = await discover(provider, signal)
    const before = await sentBefore(home, provider.name, refreshToken)
    // Keep the time of the first attempt: its answer was lost.
    if (before === undefined) await noteSent(home, provider.name, refreshToken, Date.now())
    try {
      const answer = await refreshGrant(refreshToken, provider, client, endpoints, signal)
      const now = Date.now()
      if (answer.kind === 'grant') return await save(refreshedRecord(record, answer.grant, now))
      return await markEnded(provider, record, { ...answer, now, sentBefore: before })
    } catch (error) {
      // No journal is needed for a token that was certainly not used up: an answer came, or nothing was sent.
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

  /** Another program may have refreshed it; the login has ended only if the file still has that token. */
  const markEnded = async (
    provider: Provider,
    sent: TokenRecord,
    refusal: InvalidGrant,
  ): Promise<TokenRecord> => {
    const now = await readToken(home, provider.name)
    if (!now) throw notLoggedIn(provider.name)
    if (now.refreshToken !== sent.refreshToken) {
      log.info({ provider: provider.name }, 'another program has renewed the token')
      return now
    }
    const at = new Date(refusal.now).toISOString()
    const record = { ...now, ended: { at, cause: invalidGrantReason(provider, now, refusal) } }
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
    /** Drops them: a login or logout has made them void. */
    forgetUnsaved: (provider: string): void => void unsaved.delete(provider),
  }
}

/** The error where there is no login. */
export const notLoggedIn = (provider: string): DoorwardError =>
  new DoorwardError('not-logged-in', `you are not logged in to ${provider}`, {
    hint: `doorward oauth login ${provider}`,
    about: { provider },
  })

/** The error of a login that has ended or cannot be refreshed. */
export const needsLogin = ({ provider, ended }: TokenRecord): DoorwardError =>
  new DoorwardError(
    'needs-login',
    ended
      ? `the login to ${provider} has ended: ${ended.cause}`
      : `the access token of ${provider} does not last as long as requested, and there is no refresh token`,
    { hint: `doorward oauth login ${provider}`, about: { provider } },
  )

/** New tokens, or the provider's word that the refresh token is no longer valid. */
type RefreshResult =
  | { readonly kind: 'grant'; readonly grant: Grant }
  | ({ readonly kind: 'ended' } & Pick<InvalidGrant, 'providerTime' | 'explanation'>)

/**
 * Exchanges a refresh token for new tokens. RFC 6749 section 6; only `invalid_grant` (section 5.2) means
 * that it is no longer valid. Throws `provider-refused` or `provider-unavailable`, with the provider's error
 * but no token of its answer.
 */
const refreshGrant = async (
  refreshToken: string,
  provider: Provider,
  client: Client,
  endpoints: Endpoints,
  signal: AbortSignal,
): Promise<RefreshResult> => {
  const { server } = endpoints
  const wireClient = { client_id: client.clientId }
  try {
    const response = await refreshTokenGrantRequest(
      server,
      wireClient,
      clientAuthentication(client, endpoints),
      refreshToken,
      tokenRequestOptions(server.token_endpoint, endpoints, signal),
    )
    // The id token is not needed: if it looks expired to a wrong clock, that must not cost the new refresh token.
    const answer = await standardAnswer(response, getDialect(provider), { isIssuerKnown: false })
    return {
      kind: 'grant',
      grant: toGrant(await processRefreshTokenResponse(server, wireClient, answer)),
    }
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    const secrets = [client.clientSecret, refreshToken]
    if (getOAuthError(error) === 'invalid_grant')
      return { kind: 'ended', providerTime: getDate(error), explanation: explain(error, secrets) }
    const { host } = new URL(server.token_endpoint)
    const refused = { provider, client, secrets }
    throw providerError(error, `the token could not be renewed at ${host}`, refused)
  }
}

const getDate = (error: unknown): number | undefined => {
  const date = error instanceof ResponseBodyError ? error.response.headers.get('date') : null
  const time = date === null ? Number.NaN : Date.parse(date)
  return Number.isNaN(time) ? undefined : time
}

/** What is known when a provider answers `invalid_grant`; times in milliseconds since 1970. */
export type InvalidGrant = {
  readonly now: number
  /** The provider's clock, if its answer has a date. */
  readonly providerTime: number | undefined
  /** When the same token was sent before without an answer being saved (ISO 8601). */
  readonly sentBefore: string | undefined
  /** The provider's own explanation, if there is one. */
  readonly explanation?: string | undefined
}

const day = 24 * 60 * 60 * 1000
const noticeableSkewMs = 5 * 60 * 1000

/**
 * The most likely reason why a login has ended, as the end of a sentence, and what the provider says. Providers
 * answer `invalid_grant` for all reasons; their documentation and the record narrow it down.
 */
export const invalidGrantReason = (
  provider: Pick<Provider, 'title' | 'dialect'>,
  record: Pick<TokenRecord, 'loggedInAt' | 'obtainedAt' | 'refreshExpiresAt'>,
  refusal: InvalidGrant,
): string => {
  const { explanation } = refusal
  const says = explanation === undefined ? '' : ` (${provider.title} says: ${explanation})`
  return `${likelyReason(provider, record, refusal)}${says}`
}

const likelyReason = (
  { title, dialect }: Pick<Provider, 'title' | 'dialect'>,
  record: Pick<TokenRecord, 'loggedInAt' | 'obtainedAt' | 'refreshExpiresAt'>,
  { now, providerTime, sentBefore }: InvalidGrant,
): string => {
  if (sentBefore !== undefined)
    return `no token came of the renewal at ${sentBefore}, and ${title} counts its refresh token as used`
  if (record.refreshExpiresAt !== undefined && Date.parse(record.refreshExpiresAt) <= now)
    return `the refresh token was good until ${record.refreshExpiresAt.slice(0, 10)}`
  const age = now - Date.parse(record.loggedInAt ?? record.obtainedAt)
  if (dialect === 'google' && age >= 6.9 * day && age <= 8 * day)
    return 'Google ends a login after 7 days while the consent screen of its app is in testing: publish the app'
  if (providerTime !== undefined && Math.abs(providerTime - now) > noticeableSkewMs)
    return `the clock of this machine is ${minutes(Math.abs(providerTime - now))} ${providerTime > now ? 'behind' : 'ahead of'} that of ${title}: set it`
  return documented[dialect](title, age)
}

const minutes = (ms: number): string => `${Math.round(ms / 60_000)} minutes`

const documented: Readonly<Record<Provider['dialect'], (title: string, ageMs: number) => string>> =
  {
    standard: (title) => `the access was revoked at ${title}, or the refresh token has expired`,
    // https://developers.google.com/identity/protocols/oauth2#expiration
    google: (_, ageMs) =>
      `the access was revoked at Google, the password was changed, ${ageMs > 180 * day ? 'it was not used for six months, ' : ''}or more than 100 logins were made with the same client`,
    // https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens
    github: () =>
      'the access was revoked at GitHub, the refresh token was not used for six months, or another program used it',
    // https://docs.slack.dev/authentication/using-token-rotation
    slack: () =>
      'the access was revoked at Slack, the refresh token was not used for 30 days, or another program used it',
  }
