import type { Account } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { githubPauseMs } from '../../util/http-retry-after.ts'
import { askProvider, type ProviderReply, refusedBy, toText } from '../providers/request.ts'
import { parseScopes } from '../tokens/token-record.ts'
import {
  type Dialect,
  errorAnswer,
  notEnded,
  type Revocation,
  combineRevocation,
  type RevocationRequest,
  type TokenAnswer,
  type TokenEnd,
  tokensByKind,
} from './dialect.ts'

/**
 * The scopes of GitHub that include others; if both are requested, the answer names only the wider one.
 * https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps#normalized-scopes
 */
const githubScopes: Readonly<Record<string, readonly string[]>> = {
  repo: ['repo:status', 'repo_deployment', 'public_repo', 'repo:invite', 'security_events'],
  user: ['read:user', 'user:email', 'user:follow'],
  project: ['read:project'],
  codespace: ['codespace:secrets'],
  'admin:org': ['write:org', 'manage_runners:org'],
  'write:org': ['read:org'],
  'admin:repo_hook': ['write:repo_hook'],
  'write:repo_hook': ['read:repo_hook'],
  'admin:public_key': ['write:public_key'],
  'write:public_key': ['read:public_key'],
  'admin:gpg_key': ['write:gpg_key'],
  'write:gpg_key': ['read:gpg_key'],
  'admin:ssh_signing_key': ['write:ssh_signing_key'],
  'write:ssh_signing_key': ['read:ssh_signing_key'],
  'write:packages': ['read:packages'],
  'write:discussion': ['read:discussion'],
  audit_log: ['read:audit_log'],
}

/**
 * GitHub's codes for the errors of RFC 6749 section 5.2, which come with HTTP 200.
 * https://docs.github.com/en/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors
 * and, for the device flow,
 * https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#error-codes-for-the-device-flow
 */
const errors: Readonly<Record<string, string>> = {
  bad_verification_code: 'invalid_grant',
  bad_refresh_token: 'invalid_grant',
  incorrect_client_credentials: 'invalid_client',
  // For an unknown client id GitHub answers with its page for 404.
  'Not Found': 'invalid_client',
  unverified_user_email: 'access_denied',
  application_suspended: 'unauthorized_client',
  device_flow_disabled: 'unauthorized_client',
  incorrect_device_code: 'invalid_grant',
  token_expired: 'expired_token',
}

const normalise = (answer: TokenAnswer): TokenAnswer =>
  typeof answer.body['error'] === 'string' ? errorAnswer(answer, errors) : answer

/** GitHub's API refuses requests without a user agent. */
const headers = {
  accept: 'application/vnd.github+json',
  'user-agent': 'doorward',
  'x-github-api-version': '2022-11-28',
}

/**
 * The owner of the app (with the client secret) revokes the whole grant or one token
 * (https://docs.github.com/en/rest/apps/oauth-applications). Without it, and for a refresh token, as the
 * holder of the tokens (https://docs.github.com/en/rest/credentials/revoke).
 */
const revoke = async (request: RevocationRequest): Promise<Revocation> => {
  const { tokens, client, apiUrl, extent } = request
  if (apiUrl === undefined)
    return {
      revokedAtProvider: false,
      detail: 'the address of its API is not known (api_url of the provider in gateway.yaml)',
    }
  const all = tokensByKind(tokens)
  const asOwner = client.clientSecret === undefined ? undefined : await revokeAsOwner(request)
  if (asOwner === 'revoked' && extent === 'grant')
    return combineRevocation(all.map(([kind]) => [kind, 'revoked']))
  if (asOwner instanceof DoorwardError && asOwner.code === 'provider-unavailable')
    return combineRevocation(all.map(([kind]) => [kind, asOwner]))
  // The secret may be wrong, or the access token expired: revoke what is left as the holder.
  const access = asOwner === 'revoked' || asOwner === 'ended' ? asOwner : undefined
  const left = all.filter(([kind]) => kind === 'refresh token' || access === undefined)
  const credentials = left.map(([, token]) => token)
  const rest = left.length === 0 ? undefined : await revokeAsHolder(request, credentials)
  return combineRevocation(
    all.map(([kind]) => [kind, (kind === 'access token' ? access : undefined) ?? rest ?? 'ended']),
  )
}

const revokeAsOwner = async (request: RevocationRequest): Promise<TokenEnd> => {
  const { tokens, client, apiUrl, extent, signal } = request
  const what = extent === 'grant' ? 'grant' : 'token'
  const url = `${apiUrl}/applications/${encodeURIComponent(client.clientId)}/${what}`
  const basic = Buffer.from(`${client.clientId}:${client.clientSecret}`).toString('base64')
  try {
    const reply = await askProvider(
      url,
      {
        method: 'DELETE',
        headers: { ...headers, authorization: `Basic ${basic}` },
        json: { access_token: tokens.accessToken },
      },
      signal,
    )
    if (reply.status === 204) return 'revoked'
    return saysEnded(reply) ? 'ended' : toFailure(url, reply)
  } catch (error) {
    return notEnded(error)
  }
}

/**
 * True when the token no longer exists. A 404 with another message comes from a server that does not know
 * the request: `api_url` is wrong, and the token may still be valid.
 */
const saysEnded = ({ status, body }: ProviderReply): boolean =>
  status === 404 && body['message'] === 'Not Found'

/** Without `authorization`: GitHub refuses this request with it. */
const revokeAsHolder = async (
  { apiUrl, signal }: RevocationRequest,
  credentials: readonly string[],
): Promise<TokenEnd> => {
  const url = `${apiUrl}/credentials/revoke`
  try {
    const reply = await askProvider(url, { method: 'POST', headers, json: { credentials } }, signal)
    return reply.status === 202 ? 'revoked' : toFailure(url, reply)
  } catch (error) {
    return notEnded(error)
  }
}

/** A 403 is a refusal or a rate limit, which is 60 an hour without `authorization`. */
const toFailure = (url: string, reply: ProviderReply): DoorwardError => {
  const { status, headers: answered, body } = reply
  const retryAfterMs = githubPauseMs({
    status,
    header: (name) => answered.get(name),
    message: body['message'],
  })
  if (retryAfterMs === undefined) return refusedBy(url, reply)
  return new DoorwardError(
    'provider-unavailable',
    `${new URL(url).host} rate limit reached (${status})`,
    { hint: 'try again later', retryAfterMs },
  )
}

/** https://docs.github.com/en/rest/users/users#get-the-authenticated-user */
const identify = async (
  accessToken: string,
  apiUrl: string,
  signal: AbortSignal,
): Promise<Account | undefined> => {
  return readUser(await askForUser(accessToken, apiUrl, signal))
}

const askForUser = (accessToken: string, apiUrl: string, signal: AbortSignal) =>
  askProvider(
    `${apiUrl}/user`,
    { headers: { ...headers, authorization: `Bearer ${accessToken}` } },
    signal,
  )

const readUser = ({ status, body }: ProviderReply): Account | undefined => {
  const [id, login] = [toText(body['id']), toText(body['login'])]
  return status === 200 && id !== undefined ? { id, name: login ?? id } : undefined
}

/**
 * The account of a token, its scopes, and its expiry. A token of a GitHub App, or with fine-grained
 * permissions, has no scopes.
 * https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/scopes-for-oauth-apps
 * Throws `provider-refused` for a token that is not valid, and `provider-unavailable`.
 */
export const inspectToken = async (
  accessToken: string,
  apiUrl: string,
  signal: AbortSignal,
): Promise<InspectedToken> => {
  const reply = await askForUser(accessToken, apiUrl, signal)
  const account = readUser(reply)
  if (account)
    return {
      account,
      scopes: parseScopes(reply.headers.get('x-oauth-scopes') ?? ''),
      expiresAt: readExpiry(reply.headers.get('github-authentication-token-expiration')),
    }
  const { host } = new URL(apiUrl)
  if (reply.status === 401)
    throw new DoorwardError('provider-refused', `${host} refused the token`, {
      hint: 'gh auth status, or log in with: doorward oauth login github',
    })
  throw toFailure(`${apiUrl}/user`, reply)
}

type InspectedToken = {
  readonly account: Account
  readonly scopes: readonly string[]
  /** ISO 8601; null where GitHub names no time. */
  readonly expiresAt: string | null
}

/**
 * The time in `2026-05-01 07:00:00 UTC` or `2026-05-01 07:00:00 +0500`. GitHub has sent its own time for some
 * tokens (github.com/google/go-github/issues/3708): a time that is not to come says nothing of a good token.
 * https://github.blog/changelog/2021-07-26-expiration-options-for-personal-access-tokens/
 */
const readExpiry = (text: string | null): string | null => {
  const [, day, time, zone] =
    /^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) (UTC|[+-]\d{4})$/.exec(text ?? '') ?? []
  const offset = zone === 'UTC' ? 'Z' : zone?.replace(/(\d\d)$/, ':$1')
  const at = Date.parse(`${day}T${time}${offset}`)
  return at > Date.now() + noticeableMs ? new Date(at).toISOString() : null
}

const noticeableMs = 60_000

/** GitHub: OAuth apps and GitHub apps, at github.com or an Enterprise Server. */
export const github: Dialect = {
  normalise,
  revoke,
  identify,
  endsAllLogins: false,
  // https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens
  refreshEndsAccessToken: true,
  // https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps#device-flow
  isDeviceFlowPublic: true,
  impliedScopes: githubScopes,
}
