import { protectedResourceRequest } from 'oauth4webapi'
import type { Account } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/abort.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import { isOtherAccount, toPendingRevocation } from '../logout/revoke.ts'
import { rememberLoginClient } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import { requestOptions, toText } from '../providers/request.ts'
import type { Quirks } from '../providers/templates.ts'
import type { OAuthServices } from '../services.ts'
import { isKeychainUnavailable, type TokenHome } from '../tokens/keychain.ts'
import { type Grant, missingIn, type TokenRecord, toTokenRecord } from '../tokens/token-record.ts'
import { readAccounts, readToken, writeToken } from '../tokens/token-store.ts'
import type { Attempt, Outcome, PendingLogins } from './pending-logins.ts'

/**
 * The last stage of every login: asks who has logged in, then writes client and tokens to the disk. Throws
 * `login-cancelled` when the login has ended, or `home-unusable`; the tokens are revoked then.
 */
export const saveGrant = async (
  { dependencies: { home, env }, withLock, revocations, tokens }: OAuthServices,
  pending: PendingLogins,
  attempt: Attempt,
  grant: Grant,
  signal: AbortSignal,
): Promise<Outcome> => {
  const { provider, client, endpoints } = attempt
  const obtainedAt = Date.now()
  const { identify, impliedScopes } = getDialect(provider)
  const api = { identify, apiUrl: provider.apiUrl }
  const account = await findAccount(grant, endpoints, api, signal)
  const record = toTokenRecord(attempt, grant, account, obtainedAt)
  let isSaved = false
  try {
    return await withLock(provider.name, async () => {
      // Throws for a login that has ended: nothing is written then.
      pending.beginSaving(attempt)
      const before = tokens.unsaved(provider.name) ?? (await readStoredLogin(home, provider.name))
      const others = (await readAccounts(home, provider.name).catch(() => [])).filter(
        (record) => record.provider !== provider.name,
      )
      await rememberLoginClient(home, provider, env, client, others)
      await writeToken(home, record)
      isSaved = true
      tokens.changed(provider.name)
      const replaced = before?.account ?? null
      return {
        status: 'authorized',
        account,
        ...(replaced && isOtherAccount(replaced, account) && { replaced }),
        ...sameAccountIn(others, account),
        ...missingIn(record, impliedScopes),
      }
    })
  } catch (error) {
    if (!isSaved) await revocations.revokeUnused(toPendingRevocation(record, client, 'tokens'))
    throw error
  }
}

/** The first of these logins that is certainly of this account. */
export const sameAccountIn = (
  records: readonly TokenRecord[],
  account: Account | null,
): { readonly sameAccountAs?: string } => {
  const same = records.find((record) => account !== null && record.account?.id === account.id)
  return same ? { sameAccountAs: same.provider } : {}
}

/**
 * The stored login of a provider; undefined also for a file that cannot be used, which a login replaces.
 * Throws `keychain-unavailable` for one that is good, but sealed.
 */
export const readStoredLogin = async (
  home: TokenHome,
  provider: string,
): Promise<TokenRecord | undefined> => {
  try {
    return await readToken(home, provider)
  } catch (error) {
    if (error instanceof DoorwardError && !isKeychainUnavailable(error)) return undefined
    throw error
  }
}

/** For all requests together: a name is not worth a longer wait of the user at the browser. */
const timeoutMs = 20_000

/**
 * Who has logged in: from the id token, else from the userinfo endpoint, else from the API of the
 * provider's dialect. Null, never an error, when it is not known: the tokens work all the same.
 */
export const findAccount = async (
  grant: Grant,
  endpoints: Endpoints,
  api: Api,
  signal: AbortSignal,
): Promise<Account | null> =>
  withTimeLimit(timeoutMs, signal, (limited) => fetchAccount(grant, endpoints, api, limited))

type Api = { readonly identify: Dialect['identify']; readonly apiUrl?: string }

const fetchAccount = async (
  grant: Grant,
  { server, quirks }: Endpoints,
  { identify, apiUrl }: Api,
  signal: AbortSignal,
): Promise<Account | null> => {
  const fromToken = grant.idClaims ? readAccount(grant.idClaims) : undefined
  if (fromToken && fromToken.name !== fromToken.id) return fromToken
  const endpoint = server.userinfo_endpoint
  const fromUserinfo = endpoint
    ? await fetchUserinfo(endpoint, quirks, grant.accessToken, signal)
    : undefined
  // OpenID Connect Core section 5.3.2: the userinfo of another subject must not be used.
  const isSame = !fromToken || fromToken.id === fromUserinfo?.id
  const known = (isSame ? fromUserinfo : undefined) ?? fromToken
  if (known || !identify || apiUrl === undefined) return known ?? null
  return (await identify(grant.accessToken, apiUrl, signal).catch(() => undefined)) ?? null
}

/** Atlassian and Dropbox have `account_id`, Spotify `display_name`. */
const ids = ['sub', 'id', 'account_id']
const names = ['email', 'preferred_username', 'login', 'username', 'name', 'display_name']

/** The account in id token claims or a userinfo answer, or undefined without an id. */
export const readAccount = (claims: Readonly<Record<string, unknown>>): Account | undefined => {
  const id = ids.map((key) => toText(claims[key])).find((text) => text !== undefined)
  if (id === undefined) return undefined
  const name = names.map((key) => toText(claims[key])).find((text) => text !== undefined)
  return { id, name: name ?? id }
}

const fetchUserinfo = async (
  endpoint: string,
  quirks: Quirks | undefined,
  accessToken: string,
  signal: AbortSignal,
): Promise<Account | undefined> => {
  const { method = 'GET', json, path = [] } = quirks?.userinfo ?? {}
  try {
    const headers = new Headers({ accept: 'application/json', ...quirks?.headers })
    if (json !== undefined) headers.set('content-type', 'application/json')
    const response = await protectedResourceRequest(
      accessToken,
      method,
      new URL(endpoint),
      headers,
      json === undefined ? null : JSON.stringify(json),
      requestOptions(endpoint, signal),
    )
    if (response.status !== 200) return undefined
    let found: unknown = await response.json()
    for (const key of path) found = isRecord(found) ? found[key] : undefined
    return isRecord(found) ? readAccount(found) : undefined
  } catch {
    return undefined
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null
