import { getValidatedIdTokenClaims, type IDToken, type TokenEndpointResponse } from 'oauth4webapi'
import { z } from 'zod'
import type { Account, TokenSummary } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Client } from '../providers/client-store.ts'
import { loginServerSchema, toLoginServer } from '../providers/login-server.ts'
import type { Provider } from '../providers/providers.ts'

/** One file in `tokens/`. Fields of a newer version are kept. */
export const tokenRecordSchema = z.looseObject({
  version: z.literal(1),
  provider: z.string(),
  accessToken: z.string().min(1),
  tokenType: z.string().min(1),
  refreshToken: z.string().min(1).optional(),
  scopes: z.array(z.string()),
  expiresAt: z.iso.datetime().nullable(),
  obtainedAt: z.iso.datetime(),
  account: z.object({ id: z.string(), name: z.string() }).nullable(),
  /** The program whose token this is; it is not revoked by a logout, because that program uses it too. */
  importedFrom: z.literal('gh').optional(),
  /** The client the tokens belong to: only it can refresh or revoke them. */
  clientId: z.string().min(1),
  /** The server that gave the tokens; undefined in records of earlier versions. */
  server: loginServerSchema.optional(),
  /** The scopes that the login requested; `scopes` are those it was granted. */
  requestedScopes: z.array(z.string()).optional(),
  /** True where they were chosen for the login instead of the provider's default. */
  scopesChosen: z.boolean().optional(),
  /** When the user logged in; `obtainedAt` is the time of the newest token. */
  loggedInAt: z.iso.datetime().optional(),
  /** When the refresh token expires, if the provider says so. */
  refreshExpiresAt: z.iso.datetime().optional(),
  /** Set once the provider has refused the refresh token: when and why. */
  ended: z.object({ at: z.iso.datetime(), cause: z.string() }).optional(),
})
export type TokenRecord = z.infer<typeof tokenRecordSchema>

/** The scopes that a login requested, and its client. */
type LoginRequest = {
  readonly provider: Provider
  readonly client: Client
  readonly scopes: readonly string[]
  readonly areScopesChosen: boolean
}

/** The record of a grant; `obtainedAt` is in milliseconds since 1970. */
export const toTokenRecord = (
  { provider, client, scopes, areScopesChosen }: LoginRequest,
  grant: Grant,
  account: Account | null,
  obtainedAt: number,
): TokenRecord => ({
  version: 1,
  provider: provider.name,
  account,
  scopes: [...(grant.scopes ?? scopes)],
  ...toTokens(grant, obtainedAt, grant.refreshToken !== undefined),
  clientId: client.clientId,
  server: toLoginServer(provider),
  requestedScopes: [...scopes],
  ...(areScopesChosen && { scopesChosen: true }),
  loggedInAt: new Date(obtainedAt).toISOString(),
})

/**
 * A record after a refresh. It keeps the fields that the answer does not name: most providers keep the
 * refresh token (RFC 6749 section 6) and the scopes.
 */
export const refreshedRecord = (
  record: TokenRecord,
  grant: Grant,
  obtainedAt: number,
): TokenRecord => {
  const { ended: _, ...kept } = record
  return {
    ...kept,
    ...toTokens(grant, obtainedAt, true),
    ...(grant.scopes && { scopes: [...grant.scopes] }),
  }
}

/**
 * Mailchimp and VK send a lifetime of 0 for a token that never expires. A lifetime of 0 with a refresh token
 * means that the token has expired.
 */
const toTokens = (grant: Grant, obtainedAt: number, isRefreshable: boolean) => ({
  tokenType: grant.tokenType,
  accessToken: grant.accessToken,
  ...(grant.refreshToken !== undefined && { refreshToken: grant.refreshToken }),
  expiresAt:
    grant.expiresInSeconds === 0 && !isRefreshable
      ? null
      : (timeAfter(obtainedAt, grant.expiresInSeconds) ?? null),
  obtainedAt: new Date(obtainedAt).toISOString(),
  ...(grant.refreshExpiresInSeconds !== undefined && {
    refreshExpiresAt: timeAfter(obtainedAt, grant.refreshExpiresInSeconds),
  }),
})

const timeAfter = (start: number, seconds: number | undefined): string | undefined =>
  seconds === undefined
    ? undefined
    : new Date(start + Math.min(seconds, tenYears) * 1000).toISOString()

/** In seconds; a longer lifetime may not fit a date. */
const tenYears = 10 * 365 * 24 * 60 * 60

/**
 * A token record as the local API shows it, without its tokens. `now` is in milliseconds since 1970;
 * `implied` are the scopes that the provider grants with others.
 */
export const toSummary = (
  record: TokenRecord,
  now: number,
  implied: Readonly<Record<string, readonly string[]>> = {},
): TokenSummary => ({
  provider: record.provider,
  status: getStatus(record, now),
  account: record.account && { id: record.account.id, name: record.account.name },
  scopes: record.scopes,
  ...missingIn(record, implied),
  expiresAt: record.expiresAt,
  ...(record.refreshExpiresAt !== undefined && { loginExpiresAt: record.refreshExpiresAt }),
  refreshable: record.refreshToken !== undefined && !record.ended,
  obtainedAt: record.obtainedAt,
})

/** The scopes that the login requested and was not granted; empty where nothing is missing. */
export const missingIn = (
  { requestedScopes, scopes, refreshToken }: TokenRecord,
  implied: Readonly<Record<string, readonly string[]>>,
): { readonly missingScopes?: string[] } => {
  const granted = { scopes, hasRefreshToken: refreshToken !== undefined }
  const missing = missingScopes(requestedScopes ?? [], granted, implied)
  return missing.length === 0 ? {} : { missingScopes: missing }
}

/** True once only a new login brings a token. */
export const isLoginOver = (record: TokenRecord, now: number): boolean =>
  getStatus(record, now) === 'needs-login'

const getStatus = (record: TokenRecord, now: number): TokenSummary['status'] => {
  if (record.ended) return 'needs-login'
  if (record.expiresAt === null || Date.parse(record.expiresAt) > now) return 'ok'
  return record.refreshToken === undefined ? 'needs-login' : 'expired'
}

/** The tokens that a provider granted. Lifetimes count from the answer; undefined means that it names none. */
export type Grant = {
  readonly accessToken: string
  readonly tokenType: string
  readonly refreshToken: string | undefined
  readonly expiresInSeconds: number | undefined
  /** `refresh_token_expires_in` (GitHub, Google) or `refresh_expires_in` (Keycloak). */
  readonly refreshExpiresInSeconds: number | undefined
  /** The granted scopes; undefined when the answer names none, which means all requested ones. */
  readonly scopes: readonly string[] | undefined
  readonly idClaims: IDToken | undefined
}

/** The grant in an answer that the library has validated. Throws `provider-refused`. */
export const toGrant = (answer: TokenEndpointResponse): Grant => {
  const { access_token: accessToken, refresh_token: refreshToken } = answer
  const scopes = answer.scope === undefined ? undefined : parseScopes(answer.scope)
  requireUsualSizes([accessToken, refreshToken ?? ''], scopes ?? [])
  // RFC 6749 appendix A.12 and A.17: a token with a line break could forge headers.
  if (![accessToken, refreshToken ?? ' '].every((token) => /^[\x20-\x7e]+$/.test(token)))
    throw new DoorwardError(
      'provider-refused',
      'the provider sent a token with characters that a token cannot have',
      { hint: 'check the token endpoint in gateway.yaml' },
    )
  return {
    accessToken,
    tokenType: answer.token_type === 'bearer' ? 'Bearer' : answer.token_type,
    refreshToken,
    expiresInSeconds: answer.expires_in,
    refreshExpiresInSeconds: parseSeconds(
      answer['refresh_token_expires_in'] ?? answer['refresh_expires_in'],
    ),
    scopes,
    idClaims: getValidatedIdTokenClaims(answer),
  }
}

/** Larger ones fit neither a request header nor the environment of a program. */
const maxTokenLength = 16 * 1024
const maxScopes = 200
const maxScopeLength = 2048

/** An answer may have 1 MiB, but all of these are kept and shown. Throws `provider-refused`. */
const requireUsualSizes = (tokens: readonly string[], scopes: readonly string[]): void => {
  const excess = tokens.some((token) => token.length > maxTokenLength)
    ? 'a token of more than 16 kB'
    : scopes.length > maxScopes
      ? `more than ${maxScopes} scopes`
      : scopes.some((scope) => scope.length > maxScopeLength)
        ? 'a scope of more than 2,048 characters'
        : undefined
  if (excess === undefined) return
  throw new DoorwardError('provider-refused', `the provider sent ${excess}`, {
    hint: 'check the token endpoint in gateway.yaml, and request fewer scopes: they make some tokens larger',
  })
}

/** Some providers send the number as text; Keycloak sends 0 for no expiry. */
const parseSeconds = (value: unknown): number | undefined => {
  const seconds = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0
    ? seconds
    : undefined
}

/**
 * Scopes of an answer: RFC 6749 separates them with spaces, GitHub and Slack with commas. Invalid ones
 * (appendix A.4) are left out, since scopes are shown to users.
 */
export const parseScopes = (text: string): string[] => [
  ...new Set(text.split(/[ ,]+/).filter((scope) => /^[\x21-\x7e]+$/.test(scope))),
]

type GrantedScopes = {
  readonly scopes: readonly string[]
  readonly hasRefreshToken: boolean
}

/**
 * The scopes that were requested and not granted. A scope also counts as granted when a granted one
 * includes it (`implied`, from the provider's dialect), and `offline_access` when there is a refresh token
 * (OpenID Connect Core section 11). A provider that names no scope at all, as GitHub for its GitHub Apps,
 * does not grant by scopes: then nothing is missing.
 */
export const missingScopes = (
  requested: readonly string[],
  { scopes, hasRefreshToken }: GrantedScopes,
  implied: Readonly<Record<string, readonly string[]>>,
): string[] => {
  if (scopes.length === 0) return []
  const granted = new Set(scopes)
  // Iteration of a set includes what is added during it.
  for (const scope of granted)
    for (const part of Object.hasOwn(implied, scope) ? (implied[scope] ?? []) : [])
      granted.add(part)
  if (hasRefreshToken) granted.add('offline_access')
  return [...new Set(requested)].filter((scope) => !granted.has(scope))
}
