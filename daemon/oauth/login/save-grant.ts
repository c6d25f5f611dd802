import { protectedResourceRequest } from 'oauth4webapi'
import type { Account } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/abort.ts'
import type { KeyedMutex } from '../../util/concurrency.ts'
import type { OAuthDependencies, Tokens } from '../dependencies.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import type { RevocationQueue } from '../logout/revocation-queue.ts'
import type { PendingRevocation } from '../logout/revocation-store.ts'
import { compareAccounts, isDead, whatToRevoke } from '../logout/revoke.ts'
import { endedTogether, endedTogetherCause } from '../logout/spare-login.ts'
import { findClient, rememberClient } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import type { Provider } from '../providers/providers.ts'
import { requestOptions, toText } from '../providers/request.ts'
import { type Grant, missingIn, type TokenRecord, toTokenRecord } from '../tokens/token-record.ts'
import { readToken, writeToken } from '../tokens/token-store.ts'
import type { Attempt, Outcome } from './pending-logins.ts'

/**
 * The last stage of every login, whichever way the grant came. Throws `login-cancelled` when the login
 * ended before, `home-unusable`, or `provider-refused` when the provider did not let the new login live
 * beside the old one. Tokens that were not saved are revoked then, or kept for that.
 */
type SaveGrant = (attempt: Attempt, grant: Grant, signal: AbortSignal) => Promise<Outcome>

export type SaveParts = {
  readonly dependencies: OAuthDependencies
  readonly inTurn: KeyedMutex
  readonly revocations: RevocationQueue
  readonly broker: Pick<Tokens, 'changed' | 'unsaved'>
}

/*
 * Who has logged in; then, in turn with all that touches this provider's file: client and tokens to the
 * disk, and after that what they replace is revoked. The replaced tokens are put beside before they are
 * overwritten: a daemon that is killed here leaves none that nobody revokes.
 * `beginSaving` is asked before anything is written; it throws when the login has ended.
 */
export const createSaveGrant = (
  { dependencies, inTurn, revocations, broker }: SaveParts,
  beginSaving: (attempt: Attempt) => void,
): SaveGrant => {
  const { home } = dependencies

  const saveRecord = async (
    { provider, client }: Attempt,
    record: TokenRecord,
    replaced: TokenRecord | undefined,
  ): Promise<void> => {
    const old = await revocationOfReplaced(dependencies, provider, replaced, record, Date.now())
    await rememberClient(home, provider.name, client)
    const name = old && (await revocations.keep(old))
    try {
      await writeToken(home, record)
    } catch (error) {
      // The old login goes on, and so must its tokens.
      if (name !== undefined) await revocations.forget(name)
      throw error
    }
  }

  /** Revokes what was replaced. Throws when the new login did not survive that. */
  const revokeReplaced = async (record: TokenRecord, signal: AbortSignal): Promise<void> => {
    if (!(await revocations.tryBeside(record, signal))) return
    await writeToken(home, endedTogether(record, Date.now()))
    broker.changed(record.provider)
    throw new DoorwardError('provider-refused', `${endedTogetherCause}; log in once more`, {
      hint: `doorward oauth login ${record.provider}`,
    })
  }

  const revokeUnsaved = async (record: TokenRecord, { client }: Attempt): Promise<void> => {
    const { provider, accessToken, refreshToken, account, obtainedAt: since } = record
    await revocations.keep({
      version: 1,
      provider,
      tokens: { accessToken, refreshToken },
      client,
      account,
      extent: 'tokens',
      since,
      attempts: 0,
    })
  }

  return async (attempt, grant, signal) => {
    const { provider, endpoints } = attempt
    const obtainedAt = Date.now()
    const letGo = revocations.hold(provider.name)
    const { identify, impliedScopes } = getDialect(provider)
    const account = await findAccount(
      grant,
      endpoints,
      { identify, apiUrl: provider.apiUrl },
      signal,
    )
    const record = toTokenRecord(attempt, grant, account, obtainedAt)
    let isSaved = false
    try {
      return await inTurn(provider.name, async () => {
        beginSaving(attempt)
        const replaced =
          broker.unsaved(provider.name) ?? (await readReplaced(dependencies, provider.name))
        const saved = withWhatIsKnown(record, replaced)
        await saveRecord(attempt, saved, replaced)
        isSaved = true
        broker.changed(provider.name)
        await revokeReplaced(saved, signal)
        return {
          status: 'authorized',
          account,
          ...replacedBy(account, replaced?.account ?? null),
          ...missingIn(saved, impliedScopes),
        }
      })
    } catch (error) {
      if (!isSaved) await revokeUnsaved(record, attempt)
      throw error
    } finally {
      letGo()
    }
  }
}

/** That a provider ends logins together is learned once. */
const withWhatIsKnown = (record: TokenRecord, replaced: TokenRecord | undefined): TokenRecord =>
  replaced?.endsTogether && replaced.clientId === record.clientId
    ? { ...record, endsTogether: true }
    : record

const replacedBy = (account: Account | null, before: Account | null) =>
  before && compareAccounts(before, account) === 'other' ? { replaced: before } : {}

/** The login that a new one takes the place of, or undefined when there is none that can be read. */
export const readReplaced = async (
  { home }: Pick<OAuthDependencies, 'home'>,
  provider: string,
): Promise<TokenRecord | undefined> => {
  try {
    return await readToken(home, provider)
  } catch (error) {
    // It is about to be replaced, whatever it is.
    if (error instanceof DoorwardError) return undefined
    throw error
  }
}

/**
 * The revocation of a login that is replaced by this one, or undefined where nothing may or need be
 * revoked. Must be made before the new login's client takes the place of the old one's.
 */
const revocationOfReplaced = async (
  { home, env }: Pick<OAuthDependencies, 'home' | 'env'>,
  provider: Provider,
  replaced: TokenRecord | undefined,
  record: TokenRecord,
  now: number,
): Promise<PendingRevocation | undefined> => {
  if (!replaced || isDead(replaced, now)) return undefined
  const { accessToken, refreshToken, account, clientId } = replaced
  const client = await findClient(home, provider, env, { clientId })
  const old: PendingRevocation = {
    version: 1,
    provider: provider.name,
    tokens: { accessToken, refreshToken },
    client,
    account,
    extent: 'tokens',
    since: new Date(now).toISOString(),
    attempts: 0,
  }
  return whatToRevoke(old, record, getDialect(provider)) ? old : undefined
}

/** For all that is asked: a name is not worth a longer wait of the person at the browser. */
const timeoutMs = 20_000

/**
 * Who has logged in: from the id token, else from the userinfo endpoint where there is one, else as the
 * provider's dialect asks. Not knowing it is null, never an error: the tokens are good all the same.
 */
export const findAccount = async (
  grant: Grant,
  endpoints: Endpoints,
  api: Api,
  ended: AbortSignal,
): Promise<Account | null> =>
  withTimeLimit(timeoutMs, ended, (signal) => askForAccount(grant, endpoints, api, signal))

type Api = { readonly identify: Dialect['identify']; readonly apiUrl?: string }

const askForAccount = async (
  grant: Grant,
  { server }: Endpoints,
  { identify, apiUrl }: Api,
  signal: AbortSignal,
): Promise<Account | null> => {
  const fromToken = grant.idClaims ? readAccount(grant.idClaims) : undefined
  if (fromToken && fromToken.name !== fromToken.id) return fromToken
  const endpoint = server.userinfo_endpoint
  const fromUserinfo = endpoint ? await askUserinfo(endpoint, grant.accessToken, signal) : undefined
  // OpenID Connect Core section 5.3.2: userinfo of another subject must not be used.
  const isSame = !fromToken || fromToken.id === fromUserinfo?.id
  const known = (isSame ? fromUserinfo : undefined) ?? fromToken
  if (known || !identify || apiUrl === undefined) return known ?? null
  return (await identify(grant.accessToken, apiUrl, signal).catch(() => undefined)) ?? null
}

/** The account in id token claims or a userinfo answer, or undefined when no id is in it. */
export const readAccount = (claims: Readonly<Record<string, unknown>>): Account | undefined => {
  const id = toText(claims['sub']) ?? toText(claims['id'])
  if (id === undefined) return undefined
  const names = ['email', 'preferred_username', 'login', 'username', 'name']
  const name = names.map((key) => toText(claims[key])).find((text) => text !== undefined)
  return { id, name: name ?? id }
}

const askUserinfo = async (
  endpoint: string,
  accessToken: string,
  signal: AbortSignal,
): Promise<Account | undefined> => {
  try {
    const headers = new Headers({ accept: 'application/json' })
    const response = await protectedResourceRequest(
      accessToken,
      'GET',
      new URL(endpoint),
      headers,
      null,
      requestOptions(endpoint, signal),
    )
    if (response.status !== 200) return undefined
    const body: unknown = await response.json()
    return typeof body === 'object' && body !== null
      ? readAccount(body as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
