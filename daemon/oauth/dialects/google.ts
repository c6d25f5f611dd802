import type { Account } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { askProvider, type ProviderReply, refusedBy, toText } from '../providers/request.ts'
import {
  type Dialect,
  notEnded,
  type Revocation,
  combineRevocation,
  type RevocationRequest,
  type TokenEnd,
  tokensByKind,
} from './dialect.ts'

/** Google's calendar API has another host than Gmail's. */
const gmailUrl = 'https://gmail.googleapis.com'
const calendarUrl = 'https://www.googleapis.com'

/**
 * https://developers.google.com/identity/protocols/oauth2/native-app#tokenrevoke: a form with one token
 * and no client. It ends all tokens of this user and client.
 */
const revoke = async ({ tokens, endpoints, signal }: RevocationRequest): Promise<Revocation> => {
  const endpoint = endpoints.server.revocation_endpoint
  if (!endpoint)
    return {
      revokedAtProvider: false,
      detail: 'its revocation endpoint is not known (revocation_endpoint in gateway.yaml)',
    }
  const all = tokensByKind(tokens)
  let end: TokenEnd = 'ended'
  for (const [, token] of all) {
    end = await revokeOne(endpoint, token, signal)
    // A token that had ended before, such as an expired access token, says nothing about the other.
    if (end !== 'ended') break
  }
  return combineRevocation(all.map(([kind]) => [kind, end]))
}

const revokeOne = async (
  endpoint: string,
  token: string,
  signal: AbortSignal,
): Promise<TokenEnd> => {
  try {
    const reply = await askProvider(endpoint, { method: 'POST', form: { token } }, signal)
    if (reply.status === 200) return 'revoked'
    return reply.body['error'] === 'invalid_token'
      ? 'ended'
      : refusedBy(endpoint, reply, undefined, [token])
  } catch (error) {
    return notEnded(error)
  }
}

/**
 * Who has logged in: the address of the mailbox, else the primary calendar, whose id is the address.
 * https://developers.google.com/workspace/gmail/api/reference/rest/v1/users/getProfile and
 * https://developers.google.com/workspace/calendar/api/v3/reference/calendars/get
 */
const identify = async (
  accessToken: string,
  apiUrl: string,
  signal: AbortSignal,
): Promise<Account | undefined> => {
  const authorization = `Bearer ${accessToken}`
  const ask = async (url: string, key: string): Promise<Account | undefined> => {
    const reply: ProviderReply = await askProvider(url, { headers: { authorization } }, signal)
    const address = reply.status === 200 ? toText(reply.body[key]) : undefined
    return address === undefined ? undefined : { id: address, name: address }
  }
  const mailbox = await ask(`${apiUrl}/gmail/v1/users/me/profile`, 'emailAddress').catch(
    (error: unknown) => {
      // Gmail may be down while the calendar is not.
      if (error instanceof DoorwardError) return undefined
      throw error
    },
  )
  if (mailbox) return mailbox
  const base = apiUrl === gmailUrl ? calendarUrl : apiUrl
  return ask(`${base}/calendar/v3/calendars/primary`, 'id')
}

/**
 * Google's OAuth, which answers by the standard. A refresh brings no new refresh token:
 * https://developers.google.com/identity/protocols/oauth2/native-app#offline
 */
export const google: Dialect = {
  normalise: (answer) => answer,
  revoke,
  identify,
  endsAllLogins: true,
  // https://developers.google.com/identity/protocols/oauth2/scopes#openid-connect
  impliedScopes: {
    'https://www.googleapis.com/auth/userinfo.email': ['email'],
    'https://www.googleapis.com/auth/userinfo.profile': ['profile'],
  },
}
