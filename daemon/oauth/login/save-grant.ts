import { protectedResourceRequest } from 'oauth4webapi'
import type { Account, ImportedLogin, ImportLogin } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/concurrency.ts'
import type { Dialect } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import { inspectToken } from '../dialects/github.ts'
import { isOtherAccount, toPendingRevocation } from '../logout/revoke.ts'
import { rememberLoginClient } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import { toLoginServer } from '../providers/login-server.ts'
import { findProvider } from '../providers/providers.ts'
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
  services: OAuthServices,
  pending: PendingLogins,
  attempt: Attempt,
  grant: Grant,
  signal: AbortSignal,
): Promise<Outcome> => {
  const { dependencies, withLock, revocations } = services
  const { home, env } = dependencies
  const { provider, client, endpoints } = attempt
  const { identify, impliedScopes } = getDialect(provider)
  const obtainedAt = Date.now()
  const account = await findAccount(grant, endpoints, { identify, apiUrl: provider.apiUrl }, signal)
  const record = toTokenRecord(attempt, grant, account, obtainedAt)
  let isSaved = false
  try {
    return await withLock(provider.name, async () => {
      // Throws for a login that has ended: nothing is written then.
      pending.beginSaving(attempt)
      const replaced = await replaceLogin(services, record, async (others) => {
        await rememberLoginClient(home, provider, env, client, others)
      })
      isSaved = true
      return { status: 'authorized', account, ...replaced, ...missingIn(record, impliedScopes) }
    })
  } catch (error) {
    if (!isSaved) await revocations.revokeUnused(toPendingRevocation(record, client, 'tokens'))
    throw error
  }
}

/**
 * Writes the tokens of a login, and what `writeFirst` writes. Returns whose login it replaced, and which other
 * login is certainly of this account.
 */
const replaceLogin = async (
  { dependencies: { home }, tokens }: OAuthServices,
  record: TokenRecord,
  writeFirst: (others: readonly TokenRecord[]) => Promise<void>,
): Promise<{ readonly replaced?: Account; readonly sameAccountAs?: string }> => {
  const { provider, account } = record
  const before = tokens.unsaved(provider) ?? (await readStoredLogin(home, provider))
  const accounts = await readAccounts(home, provider).catch(() => [])
  const others = accounts.filter((other) => other.provider !== provider)
  await writeFirst(others)
  await writeToken(home, record)
  tokens.changed(provider)
  const replaced = before?.account ?? null
  const same = others.find((other) => account !== null && other.account?.id === account.id)
  return {
    ...(replaced && isOtherAccount(replaced, account) && { replaced }),
    ...(same && { sameAccountAs: same.provider }),
  }
}

/**
 * Stores the token of another program, after GitHub has said whose it is. There is no refresh token and no
 * client, and a logout does not revoke it. Throws `provider-unknown`, `provider-misconfigured`,
 * `provider-refused`, `provider-unavailable` or `home-unusable`.
 */
export const importLogin = async (
  services: OAuthServices,
  { provider: name, accessToken }: ImportLogin,
  signal: AbortSignal,
): Promise<ImportedLogin> => {
  const { home, gateway, log, announce } = services.dependencies
  const provider = findProvider(name, gateway)
  if (provider.dialect !== 'github' || provider.apiUrl === undefined)
    throw new DoorwardError(
      'provider-misconfigured',
      `${name} is not a GitHub whose API is known, so no login can be imported`,
      { hint: 'set dialect: github and api_url of the provider in gateway.yaml' },
    )
  await home.keychain?.prepare()
  const inspected = await inspectToken(accessToken, provider.apiUrl, signal)
  const { account, expiresAt } = inspected
  const scopes = [...inspected.scopes]
  const now = new Date().toISOString()
  const record: TokenRecord = {
    version: 1,
    provider: provider.name,
    account,
    scopes,
    tokenType: 'Bearer',
    accessToken,
    expiresAt,
    obtainedAt: now,
    loggedInAt: now,
    clientId: 'gh',
    server: toLoginServer(provider),
    importedFrom: 'gh',
  }
  const replaced = await services.withLock(provider.name, () =>
    replaceLogin(services, record, async () => undefined),
  )
  log.info({ provider: provider.name }, 'login imported from gh')
  const detail = `the login of gh as ${account.name}`
  announce({ what: 'login', provider: provider.name, state: 'done', detail })
  const expiry = expiresAt === null ? {} : { expiresAt }
  return { provider: provider.name, account, scopes, ...expiry, ...replaced }
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
