import { createIssuedGrants, isVerifierOf, randomText } from './issued-grants.ts'
import {
  type Fault,
  type HeldRequest,
  type ProviderAnswer,
  type ProviderRequest,
  basicOf,
  bearerOf,
  redirectTo,
  startProviderServer,
} from './provider-server.ts'

/*
 * GitHub, as its documentation has it: errors with HTTP 200, forms unless JSON is asked for, scopes with
 * commas, numbers as text, `iss`, a free port on a registered loopback address, rotation that ends both
 * old tokens, and ways of revoking that are not RFC 7009.
 */

export type GitHubProvider = {
  readonly origin: string
  readonly client: { readonly id: string; readonly secret: string }
  /** For `providers:` of gateway.yaml, under any name; the client secret is not in it. */
  readonly gatewayEntry: object
  readonly requests: ProviderRequest[]
  /** What the person answers, and who it is. */
  answer: 'consent' | 'deny'
  person: { readonly id: number; readonly login: string }
  /** The header github-authentication-token-expiration of its API. */
  tokenExpiry: string | undefined
  readonly isAlive: (token: string) => boolean
  /** Lets every access token expire now; refresh tokens live on. */
  readonly expireAccessTokens: () => void
  /** As the person does it in the settings: ends all that was allowed. */
  readonly revokeAll: () => void
  readonly fail: (fault?: Fault) => void
  readonly hold: (path: string) => HeldRequest
  readonly close: () => void
}

export type GitHubOptions = {
  /** Default `oauth-app`; a `github-app` ignores scopes and answers with an empty one. */
  readonly app?: 'oauth-app' | 'github-app'
  /** Seconds an access token lives, with a refresh token then; default: never ends, for an OAuth app. */
  readonly accessTokenSeconds?: number
  /** Default true, as at GitHub: each code and refresh needs the client secret. */
  readonly isSecretRequired?: boolean
  /** What the person had allowed before, and so is granted too. */
  readonly alsoGranted?: readonly string[]
  /** Default `http://127.0.0.1/callback`. */
  readonly redirectUris?: readonly string[]
  readonly hasDeviceFlow?: boolean
  /** How many times a device is told to wait before the person has answered; default 1. */
  readonly devicePolls?: number
}

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

/** Starts a GitHub on a free port. */
export const startGitHubProvider = async (options: GitHubOptions = {}): Promise<GitHubProvider> => {
  const { app = 'oauth-app', isSecretRequired = true, alsoGranted = [] } = options
  const isGitHubApp = app === 'github-app'
  const seconds = options.accessTokenSeconds ?? (isGitHubApp ? 28_800 : undefined)
  const client = {
    id: isGitHubApp ? 'Iv23liGitHubApp' : 'Ov23liOAuthApp',
    secret: randomText(''),
  }
  const redirectUris = options.redirectUris ?? ['http://127.0.0.1/callback']
  const grants = createIssuedGrants()
  /** Refresh tokens of the device flow need no secret. */
  const withoutSecret = new Set<string>()
  const devices = new Map<string, { left: number; readonly scopes: readonly string[] }>()
  const person = {
    answer: 'consent' as GitHubProvider['answer'],
    who: { id: 583_231, login: 'octocat' } as GitHubProvider['person'],
    tokenExpiry: undefined as string | undefined,
  }

  const issuer = (): string => `${server.origin}/login/oauth`
  const scopesOf = (text: string | null): string[] =>
    isGitHubApp
      ? []
      : [...new Set([...(text ?? '').split(/[ ,]+/).filter(Boolean), ...alsoGranted])]

  const authorize = ({ query }: ProviderRequest): ProviderAnswer => {
    const redirectUri = query.get('redirect_uri') ?? redirectUris[0] ?? ''
    const state = query.get('state') ?? undefined
    if (query.get('client_id') !== client.id) return { status: 404, body: 'Not Found' }
    if (!isRegistered(redirectUri, redirectUris))
      return redirectTo(redirectUris[0] ?? '', {
        error: 'redirect_uri_mismatch',
        error_description: 'The redirect_uri is not associated with this application.',
        state,
      })
    if (person.answer === 'deny')
      return redirectTo(redirectUri, {
        error: 'access_denied',
        error_description: 'The user has denied your application access.',
        state,
        iss: issuer(),
      })
    if (query.has('code_challenge') && query.get('code_challenge_method') !== 'S256')
      return redirectTo(redirectUri, { error: 'invalid_request', state, iss: issuer() })
    const code = grants.issueCode({
      redirectUri,
      challenge: query.get('code_challenge') ?? undefined,
      person: String(person.who.id),
      scopes: scopesOf(query.get('scope')),
    })
    return redirectTo(redirectUri, { code, state, iss: issuer() })
  }

  const token = (request: ProviderRequest): ProviderAnswer => {
    const { form } = request
    if (form.get('client_id') !== client.id) return { status: 404, body: { error: 'Not Found' } }
    const secret = form.get('client_secret')
    const grantType = form.get('grant_type') ?? 'authorization_code'
    const old = form.get('refresh_token') ?? ''
    const isFree =
      grantType === deviceGrant || withoutSecret.has(old) || (!isSecretRequired && secret === null)
    if (!isFree && secret !== client.secret)
      return said(request, {
        error: 'incorrect_client_credentials',
        error_description: 'The client_id and/or client_secret passed are incorrect.',
        error_uri: 'https://docs.github.com/…/#incorrect-client-credentials',
      })
    if (grantType === 'refresh_token') return refresh(request, old)
    if (grantType === deviceGrant) return pollDevice(request)
    const code = grants.takeCode(form.get('code') ?? '')
    if (!code || !isVerifierOf(code.challenge, form.get('code_verifier')))
      return said(request, {
        error: 'bad_verification_code',
        error_description: 'The code passed is incorrect or expired.',
        error_uri: 'https://docs.github.com/…/#bad-verification-code',
      })
    if (form.get('redirect_uri') !== code.redirectUri)
      return said(request, {
        error: 'redirect_uri_mismatch',
        error_description: 'The redirect_uri MUST match the registered callback URL.',
        error_uri: 'https://docs.github.com/…/#redirect-uri-mismatch',
      })
    return said(request, issue(grants.open(code.person, code.scopes)))
  }

  const refresh = (request: ProviderRequest, old: string): ProviderAnswer => {
    const grant = grants.byRefresh(old)
    if (!grant)
      return said(request, {
        error: 'bad_refresh_token',
        error_description: 'The refresh token passed is incorrect or expired.',
        error_uri: 'https://docs.github.com',
      })
    grants.endGrant(grant)
    const issued = issue(grant)
    if (withoutSecret.delete(old) && issued['refresh_token'])
      withoutSecret.add(issued['refresh_token'])
    return said(request, issued)
  }

  const issue = (grant: ReturnType<typeof grants.open>): Record<string, string> => {
    const prefixes =
      seconds === undefined
        ? { access: 'gho_' }
        : { access: isGitHubApp ? 'ghu_' : 'gho_', refresh: 'ghr_' }
    const { accessToken, refreshToken } = grants.addTokens(grant, prefixes, seconds)
    return {
      access_token: accessToken,
      ...(refreshToken !== undefined && {
        expires_in: String(seconds),
        refresh_token: refreshToken,
        refresh_token_expires_in: '15897600',
      }),
      scope: grant.scopes.join(','),
      token_type: 'bearer',
    }
  }

  const startDevice = (request: ProviderRequest): ProviderAnswer => {
    if (request.form.get('client_id') !== client.id) return { status: 404, body: 'Not Found' }
    if (!options.hasDeviceFlow)
      return said(request, {
        error: 'device_flow_disabled',
        error_description: 'Device Flow must be explicitly enabled for this App',
      })
    const code = randomText('')
    devices.set(code, {
      left: options.devicePolls ?? 1,
      scopes: scopesOf(request.form.get('scope')),
    })
    return said(request, {
      device_code: code,
      user_code: 'WDJB-MJHT',
      verification_uri: `${server.origin}/login/device`,
      expires_in: '899',
      interval: '1',
    })
  }

  const pollDevice = (request: ProviderRequest): ProviderAnswer => {
    const code = request.form.get('device_code') ?? ''
    const device = devices.get(code)
    if (!device) return said(request, { error: 'incorrect_device_code' })
    device.left -= 1
    if (device.left >= 0) return said(request, { error: 'authorization_pending' })
    devices.delete(code)
    if (person.answer === 'deny') return said(request, { error: 'access_denied' })
    const issued = issue(grants.open(String(person.who.id), device.scopes))
    if (issued['refresh_token']) withoutSecret.add(issued['refresh_token'])
    return said(request, issued)
  }

  const user = (request: ProviderRequest): ProviderAnswer => {
    if (!request.headers['user-agent'])
      return { status: 403, body: 'Request forbidden by administrative rules.' }
    const grant = grants.byAccess(bearerOf(request) ?? '')
    if (!grant) return { status: 401, body: { message: 'Bad credentials' } }
    return {
      status: 200,
      headers: {
        'x-oauth-scopes': grant.scopes.join(', '),
        ...(person.tokenExpiry !== undefined && {
          'github-authentication-token-expiration': person.tokenExpiry,
        }),
      },
      body: { ...person.who, id: Number(grant.person), type: 'User', name: null, email: null },
    }
  }

  /** DELETE /applications/{client_id}/token and /grant. */
  const deleteOfApp = (request: ProviderRequest): ProviderAnswer => {
    const [user, password] = basicOf(request) ?? []
    if (user !== client.id || password !== client.secret)
      return { status: 401, body: { message: 'Bad credentials' } }
    const given = jsonOf(request)['access_token']
    if (typeof given !== 'string') return { status: 422, body: { message: 'Validation Failed' } }
    const grant = grants.byAccess(given)
    if (!grant) return { status: 404, body: { message: 'Not Found' } }
    if (request.path.endsWith('/grant')) grants.endPerson(grant.person)
    else grants.end(given)
    return { status: 204 }
  }

  /** POST /credentials/revoke: for whoever holds a token; nobody may be logged in to it. */
  const revokeCredentials = (request: ProviderRequest): ProviderAnswer => {
    if (request.headers.authorization) return { status: 403, body: { message: 'Forbidden' } }
    const { credentials } = jsonOf(request)
    if (!Array.isArray(credentials) || credentials.length === 0)
      return { status: 422, body: { message: 'Validation Failed' } }
    for (const credential of credentials) grants.end(String(credential))
    return { status: 202, body: {} }
  }

  const routes: Readonly<Record<string, (request: ProviderRequest) => ProviderAnswer>> = {
    'GET /login/oauth/authorize': authorize,
    'POST /login/oauth/access_token': token,
    'POST /login/device/code': startDevice,
    'GET /user': user,
    [`DELETE /applications/${client.id}/token`]: deleteOfApp,
    [`DELETE /applications/${client.id}/grant`]: deleteOfApp,
    'POST /credentials/revoke': revokeCredentials,
  }
  const server = await startProviderServer((request) =>
    routes[`${request.method} ${request.path}`]?.(request),
  )
  return {
    ...server,
    client,
    gatewayEntry: {
      dialect: 'github',
      issuer: issuer(),
      authorization_endpoint: `${server.origin}/login/oauth/authorize`,
      token_endpoint: `${server.origin}/login/oauth/access_token`,
      device_authorization_endpoint: `${server.origin}/login/device/code`,
      api_url: server.origin,
      client_id: client.id,
    },
    get answer() {
      return person.answer
    },
    set answer(answer) {
      person.answer = answer
    },
    get person() {
      return person.who
    },
    set person(who) {
      person.who = who
    },
    get tokenExpiry() {
      return person.tokenExpiry
    },
    set tokenExpiry(text) {
      person.tokenExpiry = text
    },
    isAlive: grants.isAlive,
    expireAccessTokens: grants.expireAccessTokens,
    revokeAll: () => grants.endPerson(String(person.who.id)),
  }
}

/** JSON for whoever asks for it, a form for all others; always with HTTP 200. */
const said = ({ headers }: ProviderRequest, body: Record<string, string>): ProviderAnswer =>
  headers.accept?.includes('application/json')
    ? { status: 200, body }
    : {
        status: 200,
        headers: { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' },
        body: new URLSearchParams(body).toString(),
      }

/** The same address, but for the port of a loopback one. */
const isRegistered = (redirectUri: string, registered: readonly string[]): boolean => {
  if (!URL.canParse(redirectUri)) return false
  const url = new URL(redirectUri)
  return registered
    .map((text) => new URL(text))
    .some((own) => {
      const isLoopback = ['127.0.0.1', 'localhost'].includes(own.hostname)
      if (isLoopback) own.port = url.port
      return own.origin === url.origin && url.pathname.startsWith(own.pathname)
    })
}

const jsonOf = ({ body }: ProviderRequest): Record<string, unknown> => {
  try {
    return JSON.parse(body) as Record<string, unknown>
  } catch {
    return {}
  }
}
