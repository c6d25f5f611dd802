import type { Account } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { askProvider, refusedBy, safeErrorCode, toText } from '../providers/request.ts'
import {
  type Dialect,
  errorAnswer,
  notEnded,
  type Revocation,
  combineRevocation,
  type RevocationRequest,
  type TokenAnswer,
  type TokenEnd,
} from './dialect.ts'

/**
 * Slack's codes for the errors of RFC 6749 section 5.2, which come with HTTP 200 and `ok: false`.
 * https://docs.slack.dev/reference/methods/oauth.v2.access#errors
 */
const errors: Readonly<Record<string, string>> = {
  invalid_code: 'invalid_grant',
  code_already_used: 'invalid_grant',
  invalid_code_verifier: 'invalid_grant',
  invalid_refresh_token: 'invalid_grant',
  token_revoked: 'invalid_grant',
  token_expired: 'invalid_grant',
  account_inactive: 'invalid_grant',
  bad_client_secret: 'invalid_client',
  invalid_client_id: 'invalid_client',
  pkce_not_allowed: 'unauthorized_client',
  bad_redirect_uri: 'redirect_uri_mismatch',
  invalid_grant_type: 'unsupported_grant_type',
  no_scopes: 'invalid_scope',
  no_user_scopes: 'invalid_scope',
  invalid_scope_requested: 'invalid_scope',
  ratelimited: 'temporarily_unavailable',
  internal_error: 'temporarily_unavailable',
  fatal_error: 'temporarily_unavailable',
  request_timeout: 'temporarily_unavailable',
  service_unavailable: 'temporarily_unavailable',
  team_added_to_org: 'temporarily_unavailable',
}

/**
 * A login has the tokens of the user in `authed_user`, a refresh at the top level:
 * https://docs.slack.dev/authentication/installing-with-oauth#exchanging and
 * https://docs.slack.dev/authentication/using-token-rotation
 */
const normalise = (answer: TokenAnswer): TokenAnswer => {
  const { status, body } = answer
  if (body['ok'] === false || typeof body['error'] === 'string') return errorAnswer(answer, errors)
  const { authed_user: user, ...flat } = body
  const nested = isRecord(user) && typeof user['access_token'] === 'string' ? user : undefined
  if (!nested) return { status, body: { ...flat, ...bearer(flat) } }
  // The token and scopes at the top level are those of a bot.
  const { access_token: _, refresh_token: __, expires_in: ___, scope: ____, ...rest } = flat
  return { status, body: { ...rest, ...nested, ...bearer(nested) } }
}

/** Slack's `token_type` says whose the token is; it is sent as a bearer token. */
const bearer = ({ token_type: type }: Readonly<Record<string, unknown>>) =>
  type === 'user' || type === 'bot' || type === undefined ? { token_type: 'Bearer' } : {}

/** Calls a method of Slack's API with this token; https://docs.slack.dev/apis/web-api/#methods */
const call = async (url: string, token: string, signal: AbortSignal) => {
  const reply = await askProvider(
    url,
    { method: 'POST', headers: { authorization: `Bearer ${token}` }, form: {} },
    signal,
  )
  const error = safeErrorCode(reply.body['error'])
  if (error !== undefined && errors[error] === 'temporarily_unavailable')
    throw new DoorwardError('provider-unavailable', `${new URL(url).host} answered ${error}`, {
      hint: 'try again later',
    })
  return { reply, error, isOk: reply.status === 200 && reply.body['ok'] === true }
}

/**
 * https://docs.slack.dev/reference/methods/auth.revoke, the access token first: its end may end the refresh
 * token too, which Slack then no longer knows.
 */
const revoke = async ({ tokens, apiUrl, signal }: RevocationRequest): Promise<Revocation> => {
  if (apiUrl === undefined)
    return {
      revokedAtProvider: false,
      detail: 'the address of its API is not known (api_url of the provider in gateway.yaml)',
    }
  const revokeOne = async (token: string, known: readonly string[]): Promise<TokenEnd> => {
    const url = `${apiUrl}/auth.revoke`
    try {
      const { reply, error, isOk } = await call(url, token, signal)
      if (isOk) return reply.body['revoked'] === false ? 'ended' : 'revoked'
      return known.includes(error ?? '') ? 'ended' : refusedBy(url, reply, error)
    } catch (error) {
      return notEnded(error)
    }
  }
  const ended = ['token_revoked', 'token_expired', 'account_inactive']
  const access = await revokeOne(tokens.accessToken, [...ended, 'invalid_auth'])
  if (tokens.refreshToken === undefined) return combineRevocation([['access token', access]])
  const isUnavailable = access instanceof DoorwardError && access.code === 'provider-unavailable'
  const isAccessRevoked = access === 'revoked'
  const refresh = isUnavailable
    ? access
    : await revokeOne(
        tokens.refreshToken,
        isAccessRevoked ? [...ended, 'invalid_auth', 'not_allowed_token_type'] : ended,
      )
  return combineRevocation([
    ['refresh token', refresh],
    ['access token', access],
  ])
}

/** https://docs.slack.dev/reference/methods/auth.test; an installation in a whole organisation has no team. */
const identify = async (
  accessToken: string,
  apiUrl: string,
  signal: AbortSignal,
): Promise<Account | undefined> => {
  const { reply, isOk } = await call(`${apiUrl}/auth.test`, accessToken, signal)
  const id = isOk ? toText(reply.body['user_id']) : undefined
  if (id === undefined) return undefined
  const user = toText(reply.body['user']) ?? id
  const team = toText(reply.body['team'])
  return { id, name: team === undefined ? user : `${user} (${team})` }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Slack's OAuth v2, for the tokens of a user. */
export const slack: Dialect = {
  normalise,
  revoke,
  identify,
  endsAllLogins: false,
  impliedScopes: {},
}
