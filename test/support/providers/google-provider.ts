import { createIssuedGrants, isVerifierOf, randomText } from './issued-grants.ts'
import {
  type Fault,
  type HeldRequest,
  type ProviderAnswer,
  type ProviderRequest,
  bearerOf,
  redirectTo,
  startProviderServer,
} from './provider-server.ts'

/*
 * Google, as its documentation has it, for a client of type desktop app: the client secret is needed all
 * the same, a person may untick scopes, a refresh answers without a refresh token, `openid email profile`
 * come back under their long names, and revoking any token ends all of that person with that client.
 */

export type GoogleProvider = {
  readonly origin: string
  readonly client: { readonly id: string; readonly secret: string }
  /** For `providers:` of gateway.yaml, under any name; the client secret is not in it. */
  readonly gatewayEntry: object
  readonly requests: ProviderRequest[]
  answer: 'consent' | 'deny'
  /** The address of who logs in. */
  person: string
  /** Scopes that the person unticks. */
  notGranted: readonly string[]
  readonly isAlive: (token: string) => boolean
  /** Lets every access token expire now; refresh tokens live on. */
  readonly expireAccessTokens: () => void
  /** As the person does it in the settings: ends all that was allowed. */
  readonly revokeAll: () => void
  readonly fail: (fault?: Fault) => void
  readonly hold: (path: string) => HeldRequest
  readonly close: () => void
}

export type GoogleOptions = {
  /** Default 3599. */
  readonly accessTokenSeconds?: number
  /** Seconds the refresh token lives, where the person allowed access for a time only. */
  readonly refreshTokenSeconds?: number
  /** Default true. */
  readonly isSecretRequired?: boolean
  /** Default true; without it no refresh token comes, as at a second login without `prompt=consent`. */
  readonly hasRefreshToken?: boolean
}

const scopeBase = 'https://www.googleapis.com/auth/'
const longNames: Readonly<Record<string, string>> = {
  email: `${scopeBase}userinfo.email`,
  profile: `${scopeBase}userinfo.profile`,
}
const mailScopes = ['https://mail.google.com/', `${scopeBase}gmail`]

/** Starts a Google on a free port. */
export const startGoogleProvider = async (options: GoogleOptions = {}): Promise<GoogleProvider> => {
  const { isSecretRequired = true, hasRefreshToken = true, accessTokenSeconds = 3599 } = options
  const client = { id: '1234-abcd.apps.googleusercontent.com', secret: randomText('GOCSPX-') }
  const grants = createIssuedGrants()
  const state: Pick<GoogleProvider, 'answer' | 'person' | 'notGranted'> = {
    answer: 'consent',
    person: 'ada@example.com',
    notGranted: [],
  }

  const authorize = ({ query }: ProviderRequest): ProviderAnswer => {
    const redirectUri = query.get('redirect_uri') ?? ''
    if (query.get('client_id') !== client.id) return page('Error 401: invalid_client')
    if (!isLoopback(redirectUri)) return page('Error 400: redirect_uri_mismatch')
    const back = { state: query.get('state') ?? undefined, iss: server.origin }
    if (state.answer === 'deny') return redirectTo(redirectUri, { ...back, error: 'access_denied' })
    const scopes = (query.get('scope') ?? '')
      .split(' ')
      .filter((scope) => scope !== '' && !state.notGranted.includes(scope))
      .map((scope) => longNames[scope] ?? scope)
    if (scopes.length === 0) return page('Error 400: invalid_request')
    const code = grants.issueCode({
      redirectUri,
      challenge: query.get('code_challenge') ?? undefined,
      person: state.person,
      scopes,
    })
    return redirectTo(redirectUri, { ...back, code, scope: scopes.join(' ') })
  }

  const token = ({ form }: ProviderRequest): ProviderAnswer => {
    if (form.get('client_id') !== client.id)
      return refused(401, 'invalid_client', 'The OAuth client was not found.')
    const secret = form.get('client_secret')
    if (secret === null && isSecretRequired)
      return refused(400, 'invalid_request', 'client_secret is missing.')
    if (secret !== null && secret !== client.secret)
      return refused(401, 'invalid_client', 'The provided client secret is invalid.')
    if (form.get('grant_type') === 'refresh_token') {
      const grant = grants.byRefresh(form.get('refresh_token') ?? '')
      if (!grant) return refused(400, 'invalid_grant', 'Token has been expired or revoked.')
      return { status: 200, body: issue(grant, false) }
    }
    const code = grants.takeCode(form.get('code') ?? '')
    if (!code) return refused(400, 'invalid_grant', 'Malformed auth code.')
    if (form.get('redirect_uri') !== code.redirectUri)
      return refused(400, 'redirect_uri_mismatch', 'Bad Request')
    if (!isVerifierOf(code.challenge, form.get('code_verifier')))
      return refused(400, 'invalid_grant', 'Invalid code verifier.')
    return { status: 200, body: issue(grants.open(code.person, code.scopes), hasRefreshToken) }
  }

  const issue = (grant: ReturnType<typeof grants.open>, isFirst: boolean) => {
    const prefixes = isFirst ? { access: 'ya29.', refresh: '1//' } : { access: 'ya29.' }
    const { accessToken, refreshToken } = grants.addTokens(grant, prefixes, accessTokenSeconds)
    return {
      access_token: accessToken,
      expires_in: accessTokenSeconds,
      ...(refreshToken !== undefined && {
        refresh_token: refreshToken,
        ...(options.refreshTokenSeconds !== undefined && {
          refresh_token_expires_in: options.refreshTokenSeconds,
        }),
      }),
      scope: grant.scopes.join(' '),
      token_type: 'Bearer',
    }
  }

  const revoke = ({ form, query }: ProviderRequest): ProviderAnswer => {
    const given = form.get('token') ?? query.get('token') ?? ''
    const grant = grants.isAlive(given) ? grants.byToken(given) : undefined
    if (!grant) return refused(400, 'invalid_token', 'Token expired or revoked')
    grants.endPerson(grant.person)
    return { status: 200, body: {} }
  }

  /** An API answer for whoever may have it. */
  const api =
    (isAllowed: (scope: string) => boolean, bodyOf: (person: string) => object) =>
    (request: ProviderRequest): ProviderAnswer => {
      const grant = grants.byAccess(bearerOf(request) ?? '')
      if (!grant) return { status: 401, body: { error: { code: 401, status: 'UNAUTHENTICATED' } } }
      return grant.scopes.some(isAllowed)
        ? { status: 200, body: bodyOf(grant.person) }
        : { status: 403, body: { error: { code: 403, status: 'PERMISSION_DENIED' } } }
    }

  const routes: Readonly<Record<string, (request: ProviderRequest) => ProviderAnswer>> = {
    'GET /o/oauth2/v2/auth': authorize,
    'POST /token': token,
    'POST /revoke': revoke,
    'GET /v1/userinfo': api(
      (scope) => scope === 'openid',
      (person) => ({ sub: `sub-of-${person}`, email: person, email_verified: true }),
    ),
    'GET /gmail/v1/users/me/profile': api(
      (scope) => mailScopes.some((start) => scope.startsWith(start)),
      (person) => ({ emailAddress: person, messagesTotal: 7, threadsTotal: 5, historyId: '1' }),
    ),
    'GET /calendar/v3/calendars/primary': api(
      (scope) => scope.startsWith(`${scopeBase}calendar`),
      (person) => ({ kind: 'calendar#calendar', id: person, summary: person, timeZone: 'UTC' }),
    ),
  }
  const server = await startProviderServer((request) =>
    routes[`${request.method} ${request.path}`]?.(request),
  )
  return {
    ...server,
    client,
    gatewayEntry: {
      dialect: 'google',
      issuer: server.origin,
      authorization_endpoint: `${server.origin}/o/oauth2/v2/auth`,
      token_endpoint: `${server.origin}/token`,
      revocation_endpoint: `${server.origin}/revoke`,
      userinfo_endpoint: `${server.origin}/v1/userinfo`,
      api_url: server.origin,
      client_id: client.id,
    },
    get answer() {
      return state.answer
    },
    set answer(answer) {
      state.answer = answer
    },
    get person() {
      return state.person
    },
    set person(person) {
      state.person = person
    },
    get notGranted() {
      return state.notGranted
    },
    set notGranted(scopes) {
      state.notGranted = scopes
    },
    isAlive: grants.isAlive,
    expireAccessTokens: grants.expireAccessTokens,
    revokeAll: () => grants.endPerson(state.person),
  }
}

const refused = (status: number, error: string, description: string): ProviderAnswer => ({
  status,
  body: { error, error_description: description },
})

const isLoopback = (redirectUri: string): boolean =>
  URL.canParse(redirectUri) &&
  ['127.0.0.1', '[::1]', 'localhost'].includes(new URL(redirectUri).hostname)

/** What goes wrong before anything is allowed is told to the person, not to the program. */
const page = (text: string): ProviderAnswer => ({
  status: 400,
  headers: { 'content-type': 'text/html; charset=utf-8' },
  body: `<!doctype html><title>Google</title><p>${text}`,
})
