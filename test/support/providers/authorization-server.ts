import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Provider } from 'oidc-provider'

/** A real OpenID Connect provider (oidc-provider) on loopback, with a switch for what its person says. */
export type AuthorizationServer = {
  readonly issuer: string
  /** `public` has no secret; `confidential` has this one, sent in the body, and `basic` by HTTP Basic. */
  readonly clients: { readonly public: string; readonly confidential: string }
  readonly secret: string
  /** Every token endpoint request, by its parameters: what was really sent. */
  readonly tokenRequests: URLSearchParams[]
  /** Every request, by its path. */
  readonly paths: string[]
  /** What the person does when asked; `page` shows a page with buttons instead. */
  answer: 'consent' | 'deny' | 'page'
  /** True while the server knows and honours this refresh token. */
  readonly isRefreshTokenAlive: (token: string) => Promise<boolean>
  readonly isAccessTokenAlive: (token: string) => Promise<boolean>
  /** Ends the grant of a refresh token, as its person would at the provider's page. */
  readonly revokeGrantOf: (refreshToken: string) => Promise<void>
  /** A refresh token of a new grant to the public client, as a login would have brought it. */
  readonly mint: () => Promise<string>
  /** `used` is one that was exchanged for another: to use it again ends the whole grant. */
  readonly stateOf: (refreshToken: string) => Promise<'alive' | 'used' | 'gone'>
  /** Resolves once so many token requests have been answered since the start. */
  readonly untilTokenRequests: (count: number) => Promise<void>
  readonly close: () => Promise<void>
}

export type AuthorizationServerOptions = {
  /** Seconds; default 3600. */
  readonly accessTokenTtl?: number
  /** Claims beside `sub`; default an email address. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly port?: number
  /** Offers the device flow (RFC 8628) too; default false. */
  readonly deviceFlow?: boolean
  /** Demands pushed authorization requests (RFC 9126); default only offers them. */
  readonly demandsPushed?: boolean
  /** Told where each token request stands; the next step waits for what it returns. */
  readonly onStep?: (step: TokenStep) => Promise<void> | void
}

/** A token request has arrived; its answer is made, half sent, or sent. */
export type TokenStep = 'received' | 'processed' | 'half-answered' | 'answered'

const accountId = 'person-1'

/** Starts it on a free port. It demands PKCE, rotates refresh tokens and sends `iss`. */
export const startAuthorizationServer = async (
  options: AuthorizationServerOptions = {},
): Promise<AuthorizationServer> => {
  const server = createServer()
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  // The issuer must be known before the provider is made, and the port before the issuer.
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const secret = randomBytes(24).toString('base64url')
  const provider = await quietly(async () => {
    const { Provider } = await import('oidc-provider')
    // A daemon that was killed breaks its connection: nothing to print.
    return Object.assign(new Provider(issuer, configuration(secret, options)), { silent: true })
  })
  const state: { answer: AuthorizationServer['answer'] } = { answer: 'consent' }
  const tokenRequests: URLSearchParams[] = []
  const paths: string[] = []
  server.on('request', ({ url }) => void paths.push(url ?? ''))
  const answered = new EventEmitter()
  serve(
    server,
    provider,
    state,
    (request) => {
      tokenRequests.push(request)
      answered.emit('token-request')
    },
    options.onStep,
  )
  return {
    issuer,
    secret,
    clients: { public: 'public', confidential: 'confidential' },
    tokenRequests,
    paths,
    get answer() {
      return state.answer
    },
    set answer(answer) {
      state.answer = answer
    },
    isRefreshTokenAlive: async (token) => (await provider.RefreshToken.find(token)) !== undefined,
    isAccessTokenAlive: async (token) => (await provider.AccessToken.find(token)) !== undefined,
    revokeGrantOf: async (refreshToken) => {
      await fetch(`${issuer}/token/revocation`, {
        method: 'POST',
        body: new URLSearchParams({ token: refreshToken, client_id: 'public' }),
      })
    },
    mint: async () => {
      const grant = new provider.Grant({ accountId, clientId: 'public' })
      grant.addOIDCScope('openid email')
      const grantId = await grant.save()
      const client = await provider.Client.find('public')
      const token = { accountId, client, grantId, gty: 'authorization_code', scope: 'openid email' }
      return new provider.RefreshToken(token).save()
    },
    stateOf: async (refreshToken) => {
      const token = await provider.RefreshToken.find(refreshToken)
      if (!token) return 'gone'
      return token.consumed ? 'used' : 'alive'
    },
    untilTokenRequests: async (count) => {
      while (tokenRequests.length < count) await once(answered, 'token-request')
    },
    close: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const configuration = (
  secret: string,
  {
    accessTokenTtl = 3600,
    claims,
    deviceFlow = false,
    demandsPushed: requirePushedAuthorizationRequests = false,
  }: AuthorizationServerOptions,
) => {
  const client = {
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token', ...(deviceFlow ? [deviceGrant] : [])],
    redirect_uris: [
      'http://127.0.0.1/callback',
      'http://localhost/callback',
      'http://127.0.0.1/own/callback',
    ],
  }
  return {
    clients: [
      { ...client, client_id: 'public', token_endpoint_auth_method: 'none' },
      {
        ...client,
        client_id: 'confidential',
        client_secret: secret,
        token_endpoint_auth_method: 'client_secret_post',
      },
      {
        ...client,
        client_id: 'basic',
        client_secret: secret,
        token_endpoint_auth_method: 'client_secret_basic',
      },
    ],
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes: ['openid', 'email', 'repo', 'user'],
    claims: { openid: ['sub'], email: ['email', 'email_verified', 'name'] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    ttl: {
      AccessToken: accessTokenTtl,
      IdToken: 3600,
      Interaction: 3600,
      RefreshToken: 86_400,
      DeviceCode: 600,
      Session: 3600,
      Grant: 86_400,
    },
    findAccount: (_: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, ...(claims ?? { email: 'ada@example.com' }) }),
    }),
    // Without it the library warns that its own page is plain.
    renderError: (ctx: PageContext, error: object) => void (ctx.body = JSON.stringify(error)),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/person/${uid}` },
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: true },
      pushedAuthorizationRequests: { enabled: true, requirePushedAuthorizationRequests },
      deviceFlow: deviceFlow ? { enabled: true, ...devicePages } : { enabled: false },
      revocation: {
        enabled: true,
        allowedPolicy: (_: unknown, { clientId }: Ids, token: Ids) => token.clientId === clientId,
      },
    },
  }
}

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

type PageContext = { body: string }

/** The forms are the library's own; without these it warns that they are plain. */
const devicePages = {
  userCodeInputSource: (ctx: PageContext, form: string) => void (ctx.body = form),
  userCodeConfirmSource: (ctx: PageContext, form: string) => void (ctx.body = form),
  successSource: (ctx: PageContext) => void (ctx.body = 'you can close this page'),
}

type Ids = { readonly clientId: string }

const serve = (
  server: Server,
  provider: Provider,
  state: { readonly answer: AuthorizationServer['answer'] },
  onTokenRequest: (request: URLSearchParams) => void,
  onStep: AuthorizationServerOptions['onStep'],
): void => {
  const handle = provider.callback()
  const record = (ctx: unknown): void => {
    const { body } = (ctx as { oidc: { body?: Record<string, string> } }).oidc
    onTokenRequest(new URLSearchParams(body))
  }
  provider.on('grant.success', record)
  provider.on('grant.error', record)
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? ''
    if (path.startsWith('/person/')) {
      void meetPerson(provider, state.answer, request, response)
      return
    }
    if (onStep && path === '/token') void inSteps(request, response, onStep, handle)
    else handle(request, response)
  })
}

/** Lets a token request go on step by step. */
const inSteps = async (
  request: IncomingMessage,
  response: ServerResponse,
  onStep: NonNullable<AuthorizationServerOptions['onStep']>,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<void> => {
  const end = response.end.bind(response)
  const answer = async (body: string): Promise<void> => {
    await onStep('processed')
    response.write(body.slice(0, body.length / 2))
    await onStep('half-answered')
    end(body.slice(body.length / 2), () => void onStep('answered'))
  }
  response.end = ((body: string) => {
    void answer(body)
    return response
  }) as typeof response.end
  await onStep('received')
  if (!request.destroyed) handle(request, response)
}

/** Plays the person at the login and the consent prompt, or shows a real page with two buttons. */
const meetPerson = async (
  provider: Provider,
  answer: AuthorizationServer['answer'],
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> => {
  const clicked = new URL(request.url ?? '', 'http://loopback').searchParams.get('answer')
  const interaction = await provider.interactionDetails(request, response)
  const { prompt, params, session, grantId } = interaction
  if (answer === 'page' && clicked === null && prompt.name === 'consent') {
    response.setHeader('content-type', 'text/html; charset=utf-8')
    response.end(consentPage)
    return
  }
  const finish = (result: object) =>
    provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true })
  if (answer === 'deny' || clicked === 'deny') return finish({ error: 'access_denied' })
  if (prompt.name === 'login') return finish({ login: { accountId } })
  // A browser that was here before goes on with its grant, as with most servers.
  const before = grantId === undefined ? undefined : await provider.Grant.find(grantId)
  const grant =
    before ??
    new provider.Grant({
      accountId: session?.accountId ?? accountId,
      clientId: params.client_id,
    })
  const missing = prompt.details.missingOIDCScope ?? []
  if (missing.length > 0) grant.addOIDCScope(missing.join(' '))
  return finish({ consent: { grantId: await grant.save() } })
}

const consentPage = `<!doctype html><title>Consent</title><link rel="icon" href="data:,"><h1>Let Doorward read your mail?</h1>
<form><button name="answer" value="consent">Allow</button><button name="answer" value="deny">Deny</button></form>`

/** The library warns on the console about things that are meant here; only its start is silenced. */
const quietly = async <Result>(task: () => Promise<Result>): Promise<Result> => {
  const { warn, info } = console
  console.warn = console.info = () => undefined
  try {
    return await task()
  } finally {
    console.warn = warn
    console.info = info
  }
}
