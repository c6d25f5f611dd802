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
 * Slack, as its documentation has it: `user_scope` with commas, redirect URIs compared letter by letter,
 * `ok: false` with HTTP 200, the tokens of a person inside `authed_user` at a login and flat at a
 * refresh, rotation that ends the old refresh token, `auth.test` and `auth.revoke`.
 */

export type SlackProvider = {
  readonly origin: string
  readonly client: { readonly id: string; readonly secret: string }
  /** For `providers:` of gateway.yaml, under any name; the client secret is not in it. */
  readonly gatewayEntry: object
  readonly requests: ProviderRequest[]
  answer: 'consent' | 'deny'
  person: { readonly id: string; readonly name: string }
  /** The addresses that count as registered; default any on loopback, so that a free port can be used. */
  redirectUris: readonly string[] | 'any'
  readonly isAlive: (token: string) => boolean
  /** Lets every access token expire now; refresh tokens live on. */
  readonly expireAccessTokens: () => void
  /** As the person does it in the settings: ends all that was allowed. */
  readonly revokeAll: () => void
  readonly fail: (fault?: Fault) => void
  readonly hold: (path: string) => HeldRequest
  readonly close: () => void
}

export type SlackOptions = {
  /** Seconds an access token lives, with rotation then; null: no rotation, never ends. Default 43200. */
  readonly accessTokenSeconds?: number | null
  /** Default false, as for an app with PKCE. */
  readonly isSecretRequired?: boolean
  /** The person leaves these out. */
  readonly notGranted?: readonly string[]
  /** An installation in a whole organisation: `team` is null. */
  readonly isEnterprise?: boolean
  readonly redirectUris?: readonly string[]
}

/** Starts a Slack on a free port. */
export const startSlackProvider = async (options: SlackOptions = {}): Promise<SlackProvider> => {
  const { isSecretRequired = false, notGranted = [], isEnterprise = false } = options
  const seconds = options.accessTokenSeconds === undefined ? 43_200 : options.accessTokenSeconds
  const client = { id: '1234567890.0987654321', secret: randomText('') }
  const grants = createIssuedGrants()
  const used = new Set<string>()
  const state: Pick<SlackProvider, 'answer' | 'person' | 'redirectUris'> = {
    answer: 'consent',
    person: { id: 'U0ADA', name: 'ada' },
    redirectUris: options.redirectUris ?? 'any',
  }
  const team = isEnterprise ? null : { id: 'T0ACME', name: 'Acme' }
  const names = new Map<string, string>()

  const authorize = ({ query }: ProviderRequest): ProviderAnswer => {
    const redirectUri = query.get('redirect_uri') ?? ''
    if (query.get('client_id') !== client.id) return page('Invalid client_id parameter')
    if (state.redirectUris !== 'any' && !state.redirectUris.includes(redirectUri))
      return page('redirect_uri did not match any configured URIs.')
    if (query.get('scope')) return page('Desktop redirects cannot request bot scopes')
    const asked = (query.get('user_scope') ?? '').split(',').filter(Boolean)
    if (asked.length === 0) return page('Invalid permissions requested')
    const back = { state: query.get('state') ?? undefined }
    if (state.answer === 'deny') return redirectTo(redirectUri, { ...back, error: 'access_denied' })
    names.set(state.person.id, state.person.name)
    const code = grants.issueCode({
      redirectUri,
      challenge: query.get('code_challenge') ?? undefined,
      person: state.person.id,
      scopes: [...asked.filter((scope) => !notGranted.includes(scope)), 'identify'],
    })
    return redirectTo(redirectUri, { ...back, code })
  }

  const token = (request: ProviderRequest): ProviderAnswer => {
    const { form } = request
    const [basicId, basicSecret] = basicOf(request) ?? []
    if ((form.get('client_id') ?? basicId) !== client.id) return refused('invalid_client_id')
    const secret = form.get('client_secret') ?? basicSecret
    if (secret === undefined ? isSecretRequired : secret !== client.secret)
      return refused('bad_client_secret')
    const grantType = form.get('grant_type') ?? 'authorization_code'
    if (grantType === 'refresh_token') return refresh(form.get('refresh_token') ?? '')
    if (grantType !== 'authorization_code') return refused('invalid_grant_type')
    const text = form.get('code') ?? ''
    if (used.has(text)) return refused('code_already_used')
    const code = grants.takeCode(text)
    if (!code) return refused('invalid_code')
    used.add(text)
    if (form.get('redirect_uri') !== code.redirectUri) return refused('bad_redirect_uri')
    if (!isVerifierOf(code.challenge, form.get('code_verifier')))
      return refused('invalid_code_verifier')
    const grant = grants.open(code.person, code.scopes)
    return accepted({
      app_id: 'A0DOORWARD',
      authed_user: { id: grant.person, ...issue(grant) },
      team,
      enterprise: isEnterprise ? { id: 'E0ACME', name: 'Acme Corp' } : null,
      is_enterprise_install: isEnterprise,
    })
  }

  const refresh = (old: string): ProviderAnswer => {
    const grant = grants.byRefresh(old)
    if (!grant) return refused('invalid_refresh_token')
    grants.end(old)
    return accepted({
      app_id: 'A0DOORWARD',
      ...issue(grant),
      user_id: grant.person,
      team,
      enterprise: null,
    })
  }

  const issue = (grant: ReturnType<typeof grants.open>) => {
    const prefixes =
      seconds === null ? { access: 'xoxp-' } : { access: 'xoxe.xoxp-1-', refresh: 'xoxe-1-' }
    const { accessToken, refreshToken } = grants.addTokens(grant, prefixes, seconds ?? undefined)
    return {
      access_token: accessToken,
      ...(refreshToken !== undefined && { refresh_token: refreshToken, expires_in: seconds }),
      scope: grant.scopes.join(','),
      token_type: 'user',
    }
  }

  const test = (request: ProviderRequest): ProviderAnswer => {
    const given = bearerOf(request)
    if (given === undefined) return refused('not_authed')
    const grant = grants.byAccess(given)
    if (!grant) return refused(grants.byToken(given) ? 'token_expired' : 'invalid_auth')
    return accepted({
      url: isEnterprise ? 'https://acme.enterprise.slack.com/' : 'https://acme.slack.com/',
      team: team?.name ?? null,
      user: names.get(grant.person) ?? 'somebody',
      team_id: team?.id ?? null,
      user_id: grant.person,
      is_enterprise_install: isEnterprise,
    })
  }

  const revoke = (request: ProviderRequest): ProviderAnswer => {
    const given = bearerOf(request)
    if (given === undefined) return refused('not_authed')
    if (!grants.isAlive(given))
      return refused(grants.byToken(given) ? 'token_expired' : 'token_revoked')
    grants.end(given)
    return accepted({ revoked: true })
  }

  const routes: Readonly<Record<string, (request: ProviderRequest) => ProviderAnswer>> = {
    'GET /oauth/v2/authorize': authorize,
    'POST /api/oauth.v2.access': token,
    'POST /api/auth.test': test,
    'POST /api/auth.revoke': revoke,
  }
  const server = await startProviderServer((request) =>
    routes[`${request.method} ${request.path}`]?.(request),
  )
  return {
    ...server,
    client,
    gatewayEntry: {
      dialect: 'slack',
      authorization_endpoint: `${server.origin}/oauth/v2/authorize`,
      token_endpoint: `${server.origin}/api/oauth.v2.access`,
      api_url: `${server.origin}/api`,
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
    get redirectUris() {
      return state.redirectUris
    },
    set redirectUris(uris) {
      state.redirectUris = uris
    },
    isAlive: grants.isAlive,
    expireAccessTokens: grants.expireAccessTokens,
    revokeAll: () => grants.endPerson(state.person.id),
  }
}

const accepted = (body: object): ProviderAnswer => ({ status: 200, body: { ok: true, ...body } })

const refused = (error: string): ProviderAnswer => ({ status: 200, body: { ok: false, error } })

/** What goes wrong before anything is allowed is told to the person, not to the program. */
const page = (text: string): ProviderAnswer => ({
  status: 200,
  headers: { 'content-type': 'text/html; charset=utf-8' },
  body: `<!doctype html><title>Slack</title><p>${text}`,
})
