import {
  createHmac,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  randomUUID,
} from 'node:crypto'
import type { components } from '@octokit/openapi-types'
import { decodeJwt, jwtVerify } from 'jose'
import { StandInChecks } from './github-checks.ts'
import { json, type Recorded, startTargetServer, type TargetServer } from './target-server.ts'

/*
 * GitHub as a maker of Apps: the page that takes a manifest, the exchange of its code, installations and their
 * tokens. It refuses what GitHub refuses. `@octokit/auth-app` talks to it in a test, so that it is no looser.
 */

type Schemas = components['schemas']

export type StandInApp = {
  readonly id: number
  readonly slug: string
  readonly name: string
  readonly owner: string
  readonly clientId: string
  readonly pem: string
  readonly permissions: Record<string, string>
  readonly events: readonly string[]
  hook: { url: string; secret: string | null }
  /** PEMs that are accepted. */
  keys: string[]
  /** What was sent to its hook, the newest first. */
  readonly deliveries: StandInDelivery[]
}

export type StandInDelivery = {
  readonly id: number
  readonly guid: string
  readonly event: string
  readonly at: string
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly payload: Readonly<Record<string, unknown>>
}

export type StandInInstallation = {
  readonly id: number
  readonly app: string
  readonly account: string
  /** `owner/name` */
  repositories: string[]
  isSuspended: boolean
}

type Minted = {
  readonly token: string
  readonly installation: StandInInstallation
  readonly repositories: readonly string[]
  readonly permissions: Readonly<Record<string, string>>
}

export type GithubAppServer = Pick<TargetServer, 'origin' | 'requests' | 'next' | 'close'> & {
  readonly apiUrl: string
  readonly apps: StandInApp[]
  readonly minted: Minted[]
  /** As its owner chooses repositories on the page of the App. */
  readonly install: (slug: string, repositories: readonly string[]) => StandInInstallation
  readonly uninstall: (slug: string) => void
  readonly deleteApp: (slug: string) => void
  /** As the button on the page of the App makes one; the old one goes. */
  readonly newKey: (slug: string) => string
  /** Something happens in a repository: sent to the hook of the App, and kept in its list. */
  readonly happen: (slug: string, event: string, payload: object) => Promise<StandInDelivery>
  readonly checks: StandInChecks
  /** Where the public addresses lead. */
  tunnel: string | undefined
  /** What a code of a manifest is, without a browser. */
  readonly press: (manifest: object, org?: string) => string
  /** Whose login the tokens are that no App has made. */
  user: { readonly login: string; readonly scopes: readonly string[] } | undefined
  /** How far its clock is ahead of ours. */
  aheadMs: number
  /** The name that its owner types on GitHub's page, in place of that in the manifest. */
  typedName: string | undefined
}

const toSlug = (name: string): string =>
  name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')

const generateKey = (): string =>
  generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  }).privateKey

/** A few for all apps in turn, as a key of RSA takes a third of a second. */
const keys: string[] = []
let keysTaken = 0

/** The next one that is none of these. */
const takeKey = (not: readonly string[] = []): string => {
  keysTaken += 1
  const key = (keys[keysTaken % 6] ??= generateKey())
  return not.includes(key) ? takeKey(not) : key
}

export const startGithubAppServer = async (): Promise<GithubAppServer> => {
  const apps: StandInApp[] = []
  const installations: StandInInstallation[] = []
  const minted: Minted[] = []
  const checks = new StandInChecks()
  const codes = new Map<string, { readonly app: StandInApp; readonly madeAt: number }>()
  const pages = new Map<string, { readonly manifest: string; readonly org?: string }>()
  const server = await startTargetServer(async (response, recorded, request) => {
    const [status, document] = await answer(recorded)
    const date = new Date(Date.now() + self.aheadMs).toUTCString()
    const scopes = self.user && { 'x-oauth-scopes': self.user.scopes.join(', ') }
    if (typeof document === 'string') {
      const isRedirect = status === 302
      response.writeHead(status, {
        date,
        ...(isRedirect ? { location: document } : { 'content-type': 'text/html' }),
      })
      response.end(isRedirect ? '' : document)
    } else await json(status, document, { date, ...scopes })(response, recorded, request)
  })

  const findApp = (slug: string): StandInApp => {
    const app = apps.find((one) => one.slug === slug)
    if (!app) throw new Error(`there is no App ${slug}`)
    return app
  }

  const press = (manifest: object, org?: string): string => {
    const { name, hook_attributes, default_permissions, default_events } = manifest as {
      readonly name: string
      readonly hook_attributes?: { readonly url: string }
      readonly default_permissions: Record<string, string>
      readonly default_events: readonly string[]
    }
    const shown = self.typedName ?? name
    const app: StandInApp = {
      id: 1000 + apps.length,
      slug: toSlug(shown),
      name: shown,
      owner: org ?? 'octocat',
      clientId: `Iv23li${randomBytes(7).toString('hex')}`,
      pem: takeKey(),
      permissions: default_permissions,
      events: default_events,
      hook: { url: hook_attributes?.url ?? '', secret: randomBytes(20).toString('hex') },
      keys: [],
      deliveries: [],
    }
    app.keys = [app.pem]
    apps.push(app)
    const code = randomBytes(20).toString('hex')
    codes.set(code, { app, madeAt: Date.now() + self.aheadMs })
    return code
  }

  const takeManifest = (text: string, org: string | undefined): readonly [number, string] => {
    const wrong = refuseManifest(text, apps)
    if (wrong !== undefined)
      return [422, `<h1>Invalid GitHub App configuration</h1><p>${wrong}</p>`]
    const id = randomBytes(8).toString('hex')
    pages.set(id, { manifest: text, ...(org !== undefined && { org }) })
    const name = (JSON.parse(text) as { readonly name: string }).name
    return [
      200,
      `<h1>Create GitHub App</h1><form method="post" action="/confirm/${id}"><input name="name" value="${name}"><button>Create GitHub App</button></form>`,
    ]
  }

  /** The App that a JWT proves to be. */
  const readProof = async (authorization: string | undefined): Promise<StandInApp | undefined> => {
    const [, token = ''] = /^bearer (\S+)$/i.exec(authorization ?? '') ?? []
    try {
      const { iss } = decodeJwt(token)
      const app = apps.find((one) => one.clientId === iss || String(one.id) === String(iss))
      for (const pem of app?.keys ?? [])
        try {
          const now = new Date(Date.now() + self.aheadMs)
          const { payload } = await jwtVerify(token, createPublicKey(pem), {
            algorithms: ['RS256'],
            currentDate: now,
          })
          const { iat = Infinity, exp = Infinity } = payload
          const seconds = now.getTime() / 1000
          if (iat <= seconds + 1 && exp - seconds <= 601) return app
        } catch {
          // The next key.
        }
    } catch {
      // No JWT.
    }
    return undefined
  }

  const mint = (
    app: StandInApp,
    id: string,
    fields: Recorded['fields'],
  ): readonly [number, unknown] => {
    const found = installations.find((one) => String(one.id) === id && one.app === app.slug)
    if (!found) return [404, message('Not Found')]
    if (found.isSuspended) return [403, message('This installation has been suspended')]
    const { repositories = found.repositories.map(toName), permissions = app.permissions } =
      fields as { readonly repositories?: string[]; readonly permissions?: Record<string, string> }
    const full = repositories.map((name) => `${found.account}/${name}`)
    const has = (name: string) =>
      found.repositories.some((one) => one.toLowerCase() === name.toLowerCase())
    if (!full.every(has))
      return [
        422,
        message(
          'There is at least one repository that does not exist or is not accessible to the parent installation.',
        ),
      ]
    const isGranted = ([name, level]: [string, string]) =>
      app.permissions[name] === 'write' || app.permissions[name] === level
    if (!Object.entries(permissions).every(isGranted))
      return [422, message('The permissions requested are not granted to this installation.')]
    // The long form: it has the number of the App and a JWT.
    const token = `ghs_${app.id}_${randomBytes(180).toString('base64url')}.${randomBytes(64).toString('base64url')}`
    minted.push({ token, installation: found, repositories: full, permissions })
    const expires_at = new Date(Date.now() + self.aheadMs + 3_600_000)
      .toISOString()
      .replace(/\.\d+/, '')
    return [
      201,
      { token, expires_at, permissions } satisfies Partial<Schemas['installation-token']>,
    ]
  }

  const answer = async ({
    method,
    path,
    headers,
    fields,
  }: Recorded): Promise<readonly [number, unknown]> => {
    const url = new URL(path, 'http://loopback')
    const asked = `${method} ${url.pathname.replace(/^\/api\/v3/, '')}`
    const [, org] = /^POST \/(?:organizations\/([^/]+)\/)?settings\/apps\/new$/.exec(asked) ?? []
    if (/^POST \/(organizations\/[^/]+\/)?settings\/apps\/new$/.test(asked)) {
      const [status, page] = takeManifest(String(fields['manifest'] ?? ''), org)
      const state = url.searchParams.get('state') ?? ''
      return [status, page.replace('action="/confirm/', `action="/confirm/${state}/`)]
    }
    const [, state, id = ''] = /^POST \/confirm\/([^/]*)\/(\w+)$/.exec(asked) ?? []
    const page = pages.get(id)
    if (page) {
      const manifest = JSON.parse(page.manifest) as { readonly redirect_url: string }
      const code = press(manifest, page.org)
      return [302, `${manifest.redirect_url}?code=${code}&state=${state ?? ''}`]
    }
    const [, code = ''] = /^POST \/app-manifests\/(\w+)\/conversions$/.exec(asked) ?? []
    if (code !== '') {
      const made = codes.get(code)
      codes.delete(code)
      const isOld = made && Date.now() + self.aheadMs - made.madeAt > 3_600_000
      if (!made || isOld) return [404, message('Not Found')]
      return [201, toConversion(made.app, server.origin)]
    }
    const [, installer] = /^GET \/apps\/([^/]+)\/installations\/new$/.exec(asked) ?? []
    if (installer !== undefined) return [200, '<h1>Install</h1>']
    if (asked === 'GET /favicon.ico') return [200, '']
    const bearer = headers.authorization?.replace(/^bearer /i, '')
    const token = minted.find((one) => one.token === bearer)
    if (token) return asInstallation(asked, token, fields)
    if (asked === 'GET /user' && self.user) return [200, { id: 1, login: self.user.login }]
    const app = await readProof(headers.authorization)
    if (!app) {
      const said =
        self.aheadMs === 0
          ? 'A JSON web token could not be decoded'
          : "'Expiration time' claim ('exp') is too far in the future"
      return [401, message(said)]
    }
    return asApp(asked, app, fields)
  }

  const asApp = (
    asked: string,
    app: StandInApp,
    fields: Recorded['fields'],
  ): readonly [number, unknown] => {
    const own = installations.filter((one) => one.app === app.slug)
    const [, repository = ''] = /^GET \/repos\/([^/]+\/[^/]+)\/installation$/.exec(asked) ?? []
    const [, delivery] = /^GET \/app\/hook\/deliveries\/(\d+)$/.exec(asked) ?? []
    if (delivery !== undefined) {
      const found = app.deliveries.find((one) => String(one.id) === delivery)
      if (!found) return [404, message('Not Found')]
      return [
        200,
        { ...toItem(found), request: { headers: found.headers, payload: found.payload } },
      ]
    }
    const [, id = ''] = /^POST \/app\/installations\/(\d+)\/access_tokens$/.exec(asked) ?? []
    if (id !== '') return mint(app, id, fields)
    if (repository !== '') {
      const found = own.find((one) =>
        one.repositories.some((name) => name.toLowerCase() === repository.toLowerCase()),
      )
      return found ? [200, toInstallation(found)] : [404, message('Not Found')]
    }
    switch (asked) {
      case 'GET /app':
        return [200, { ...toConversion(app, server.origin), pem: undefined }]
      case 'GET /app/installations':
        return [200, own.map(toInstallation)]
      case 'GET /app/hook/deliveries':
        return [200, app.deliveries.map(toItem)]
      case 'GET /app/hook/config':
        return [
          200,
          { url: app.hook.url, content_type: 'json', insecure_ssl: '0', secret: '********' },
        ]
      case 'PATCH /app/hook/config': {
        const { url = app.hook.url, secret = app.hook.secret } = fields as Partial<
          StandInApp['hook']
        >
        if (/^https?:\/\/(localhost|127\.)/.test(url))
          return [
            422,
            message(
              "Hook url is not supported because it isn't reachable over the public Internet",
            ),
          ]
        app.hook = { url, secret }
        return [200, { url, content_type: 'json', insecure_ssl: '0', secret: '********' }]
      }
    }
    return [404, message('Not Found')]
  }

  const asInstallation = (
    asked: string,
    token: Minted,
    fields: Recorded['fields'],
  ): readonly [number, unknown] => {
    const [, method, full = '', rest] = /^(\w+) \/repos\/([^/]+\/[^/]+)(\/.+)$/.exec(asked) ?? []
    if (rest !== undefined && token.repositories.includes(full))
      return checks.answer(`${method} ${rest}`, token.permissions, fields)
    if (asked === 'GET /installation/repositories')
      return [
        200,
        {
          total_count: token.repositories.length,
          repositories: token.repositories.map((full_name) => ({ full_name })),
        },
      ]
    const [, repository = ''] = /^GET \/repos\/([^/]+\/[^/]+)$/.exec(asked) ?? []
    return token.repositories.includes(repository)
      ? [200, { full_name: repository }]
      : [404, message('Not Found')]
  }

  let deliveries = 0
  const self: GithubAppServer = {
    origin: server.origin,
    requests: server.requests,
    next: server.next,
    close: server.close,
    apiUrl: `${server.origin}/api/v3`,
    apps,
    minted,
    install: (slug, repositories) => {
      const [account = ''] = (repositories[0] ?? '').split('/')
      const installation: StandInInstallation = {
        id: 5000 + installations.length,
        app: findApp(slug).slug,
        account,
        repositories: [...repositories],
        isSuspended: false,
      }
      installations.push(installation)
      return installation
    },
    uninstall: (slug) => {
      for (const one of installations.filter(({ app }) => app === slug))
        installations.splice(installations.indexOf(one), 1)
    },
    deleteApp: (slug) => void apps.splice(apps.indexOf(findApp(slug)), 1),
    newKey: (slug) => {
      const app = findApp(slug)
      const pem = takeKey([app.pem, ...app.keys])
      app.keys = [pem]
      return pem
    },
    happen: async (slug, event, payload) => {
      const app = findApp(slug)
      const guid = randomUUID()
      const body = JSON.stringify(payload)
      const headers = {
        'x-github-event': event,
        'x-github-delivery': guid,
        'x-hub-signature-256': `sha256=${createHmac('sha256', app.hook.secret ?? '')
          .update(body)
          .digest('hex')}`,
      }
      const { pathname, hostname } = new URL(app.hook.url)
      const url = hostname.endsWith('.invalid')
        ? undefined
        : self.tunnel && `${self.tunnel}${pathname}`
      const answered = url
        ? await fetch(url, {
            method: 'POST',
            body,
            headers: { ...headers, 'content-type': 'application/json' },
          }).catch(() => undefined)
        : undefined
      const sent = {
        id: 17_000_000_000_001 + deliveries++,
        guid,
        event,
        at: new Date(Date.now() + self.aheadMs).toISOString(),
        status: answered?.status ?? 0,
        headers,
        payload: payload as Record<string, unknown>,
      }
      app.deliveries.unshift(sent)
      return sent
    },
    checks,
    tunnel: undefined,
    user: undefined,
    press,
    aheadMs: 0,
    typedName: undefined,
  }
  return self
}

/** What GitHub's page says of a manifest that it does not take. */
const refuseManifest = (text: string, apps: readonly StandInApp[]): string | undefined => {
  const manifest = JSON.parse(text) as {
    readonly name?: string
    readonly url?: string
    readonly redirect_url?: string
    readonly hook_attributes?: { readonly url?: string }
  }
  if (!manifest.url) return 'Error: "url" wasn\'t supplied.'
  if (manifest.hook_attributes && !manifest.hook_attributes.url)
    return 'Error: "url" wasn\'t supplied.'
  const hook = manifest.hook_attributes?.url ?? ''
  if (/^https?:\/\/(localhost|127\.)/.test(hook))
    return "Hook url is not supported because it isn't reachable over the public Internet"
  if ((manifest.name ?? '').length > 34) return 'Name is too long (maximum is 34 characters)'
  if (apps.some(({ name }) => name === manifest.name)) return 'Name is already taken'
  if (!manifest.redirect_url) return 'Error: "redirect_url" wasn\'t supplied.'
  return undefined
}

const toItem = ({ id, guid, event, at, status, payload }: StandInDelivery) => ({
  id,
  guid,
  event,
  action: payload['action'] ?? null,
  delivered_at: at,
  status: status === 0 ? 'failed to connect to host' : 'OK',
  status_code: status,
})

const toName = (repository: string): string => repository.split('/')[1] ?? ''

const message = (text: string): Schemas['basic-error'] => ({
  message: text,
  documentation_url: 'https://docs.github.com/rest',
})

const toConversion = (app: StandInApp, origin: string) => ({
  id: app.id,
  slug: app.slug,
  name: app.name,
  owner: { login: app.owner, type: app.owner === 'octocat' ? 'User' : 'Organization' },
  client_id: app.clientId,
  client_secret: 'e340154128314309424b7c8e90325147d99fdafa',
  webhook_secret: app.hook.secret,
  pem: app.pem,
  html_url: `${origin}/apps/${app.slug}`,
  permissions: app.permissions,
  events: app.events,
})

const toInstallation = (one: StandInInstallation) => ({
  id: one.id,
  account: { login: one.account },
  repository_selection: 'selected',
  suspended_at: one.isSuspended ? '2026-01-01T00:00:00Z' : null,
})
