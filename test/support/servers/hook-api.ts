import { hash, randomUUID } from 'node:crypto'
import type { components, operations } from '@octokit/openapi-types'
import { githubHeaders } from './sign.ts'
import { json, type Recorded, startTargetServer, type TargetServer } from './target-server.ts'

/*
 * GitHub's API of hooks as its own description has it (@octokit/openapi-types), for one repository and one
 * organisation. It delivers pings for real: signed with the secret that it was given, through `tunnel`.
 */

type Schemas = components['schemas']
type HookBody = NonNullable<
  operations['repos/create-webhook']['requestBody']
>['content']['application/json'] &
  object

type StoredHook = {
  readonly id: number
  /** `acme/door` or `acme`. */
  readonly owner: string
  active: boolean
  events: string[]
  config: { url: string; secret: string }
  readonly deliveries: Schemas['hook-delivery-item'][]
  /** What was sent, by the id of the delivery; GitHub forgets it with time. */
  readonly sent: Map<number, { readonly headers: Record<string, string>; readonly body: string }>
  readonly listedAt: Map<number, number>
}

/** A delivery that was sent and did not arrive. */
type MissedDelivery = {
  readonly event?: string
  readonly payload?: Readonly<Record<string, unknown>>
  readonly guid?: string
  readonly minutesAgo?: number
  /** GitHub lists it so long after it was sent. */
  readonly minutesLate?: number
  readonly code?: number
}

export type HookServer = Pick<TargetServer, 'requests' | 'next' | 'close'> & {
  readonly apiUrl: string
  readonly hooks: StoredHook[]
  /** As a person makes one in the browser. */
  readonly addHook: (owner: string, url: string) => StoredHook
  /** Returns its guid. */
  readonly miss: (hook: StoredHook, missed?: MissedDelivery) => string
  /** The daemon that the public address leads to; without it pings fail to connect. */
  tunnel: string | undefined
  /** How far its clock is ahead of ours. */
  aheadMs: number
  /** The paths to which it answers 500. */
  failing: RegExp | undefined
  /** Those of the token; undefined for one that has none. */
  scopes: string[] | undefined
}

export const startHookServer = async (): Promise<HookServer> => {
  const hooks: StoredHook[] = []
  const server = await startTargetServer(async (response, recorded, request) => {
    const url = new URL(recorded.path, 'http://loopback')
    if (self.failing?.test(url.pathname)) return json(500, {})(response, recorded, request)
    const [status, document] = await answer(recorded, url)
    const { scopes } = self
    const headers = {
      date: new Date(Date.now() + self.aheadMs).toUTCString(),
      ...(scopes && { 'x-oauth-scopes': scopes.join(', ') }),
      ...(Array.isArray(document) && linkOf(url, document.length)),
    }
    const shown = Array.isArray(document) ? pageOf(url, document) : document
    // Known only of lists whose items do not change.
    const etag = `"${hash('sha256', JSON.stringify(shown ?? null), 'hex')}"`
    if (recorded.headers['if-none-match'] === etag) return void response.writeHead(304).end()
    Object.assign(headers, { etag })
    if (status === 204) response.writeHead(204, headers).end()
    else await json(status, shown, headers)(response, recorded, request)
  })
  const apiUrl = `${server.origin}/api/v3`

  const linkOf = (url: URL, count: number): Record<string, string> => {
    const { size, page } = pagingOf(url)
    if (page * size >= count) return {}
    const next = new URL(`${server.origin}${url.pathname}`)
    next.search = `per_page=${size}&page=${page + 1}`
    return { link: `<${next.href}>; rel="next", <${next.href}>; rel="last"` }
  }

  const addHook = (owner: string, url: string, body: HookBody = {}): StoredHook => {
    const hook: StoredHook = {
      id: 1000 + hooks.length,
      owner,
      active: body.active ?? true,
      events: body.events ?? ['push'],
      config: { url, secret: body.config?.secret ?? '' },
      deliveries: [],
      sent: new Map(),
      listedAt: new Map(),
    }
    hooks.push(hook)
    return hook
  }

  const answer = async (
    { method, fields }: Recorded,
    url: URL,
  ): Promise<readonly [number, unknown]> => {
    const [, , repository, organisation, id, rest, deliveryId] =
      /^\/api\/v3\/(repos\/(acme\/door)|orgs\/(acme))\/hooks(?:\/(\d+))?(\/\w+)?(?:\/(\d+))?$/.exec(
        url.pathname,
      ) ?? []
    const owner = repository ?? organisation
    const needed = repository === undefined ? ['admin:org_hook'] : ['admin:repo_hook', 'repo']
    if (owner === undefined || (self.scopes && !needed.some((one) => self.scopes?.includes(one))))
      return [404, message('Not Found')]
    const own = hooks.filter((hook) => hook.owner === owner)
    if (id === undefined) {
      if (method === 'GET') return [200, own.map(toDocument)]
      const body = checked(fields as HookBody, ['name', ...patched])
      const { url: address = '' } = checked(body.config ?? {}, configKeys)
      if (body.name !== 'web') return [422, message('name')]
      if (address.includes('localhost'))
        return [422, invalid('url is not supported because it is not reachable')]
      if (own.some((hook) => hook.config.url === address))
        return [422, invalid('Hook already exists on this repository')]
      return [201, toDocument(addHook(owner, address, body))]
    }
    const hook = own.find((one) => String(one.id) === id)
    if (!hook) return [404, message('Not Found')]
    if (deliveryId !== undefined) {
      const item = hook.deliveries.find(
        (each) => String(each.id) === deliveryId && isListed(hook, each),
      )
      const sent = item && hook.sent.get(Number(item.id))
      if (!sent) return [404, message('Not Found')]
      const payload = JSON.parse(sent.body) as Record<string, unknown>
      return [200, { ...item, request: { headers: sent.headers, payload } }]
    }
    switch (`${method} ${rest ?? ''}`) {
      case 'DELETE ':
        hooks.splice(hooks.indexOf(hook), 1)
        return [204, undefined]
      case 'PATCH ': {
        const { active, events, config } = checked(fields as HookBody, patched)
        if (active !== undefined) hook.active = active
        if (events) hook.events = events
        // Without a secret it is removed (docs: "Update a repository webhook").
        if (config) hook.config = { url: String(config.url), secret: config.secret ?? '' }
        return [200, toDocument(hook)]
      }
      case 'POST /pings':
        // As at GitHub, it is delivered after the answer.
        setImmediate(() => void deliverPing(hook))
        return [204, undefined]
      case 'GET /deliveries':
        return [200, hook.deliveries.filter((item) => isListed(hook, item))]
    }
    return [404, message('Not Found')]
  }

  const isListed = (hook: StoredHook, item: StoredHook['deliveries'][number]): boolean => {
    const now = Date.now() + self.aheadMs
    const age = now - Date.parse(item.delivered_at)
    return age < keptMs && now >= (hook.listedAt.get(Number(item.id)) ?? 0)
  }

  const deliverPing = async (hook: StoredHook): Promise<void> => {
    const guid = randomUUID()
    const body = JSON.stringify({ zen: 'Keep it logically awesome.', hook_id: hook.id })
    const headers = githubHeaders(body, hook.config.secret, {
      'x-github-event': 'ping',
      'x-github-delivery': guid,
    })
    const { pathname } = new URL(hook.config.url)
    const got =
      self.tunnel === undefined
        ? undefined
        : await fetch(`${self.tunnel}${pathname}`, { method: 'POST', headers, body }).catch(
            () => undefined,
          )
    hook.deliveries.unshift({
      id: hook.deliveries.length + 1,
      guid,
      delivered_at: new Date().toISOString(),
      redelivery: false,
      duration: 0.1,
      status: got ? (got.ok ? 'OK' : got.statusText) : 'failed to connect',
      status_code: got?.status ?? 0,
      event: 'ping',
      action: null,
      installation_id: null,
      repository_id: 1,
    })
  }

  const miss = (
    hook: StoredHook,
    { event = 'pull_request', payload = {}, guid = randomUUID(), ...more }: MissedDelivery = {},
  ): string => {
    const { minutesAgo = 0, minutesLate = 0, code = 0 } = more
    const id = hook.deliveries.length + 1
    const body = JSON.stringify(payload)
    const named = { 'X-GitHub-Event': event, 'X-GitHub-Delivery': guid }
    const headers = { 'Content-Type': 'application/json', 'Content-Length': '9', ...named }
    hook.sent.set(id, { headers, body })
    const sentMs = Date.now() + self.aheadMs - minutesAgo * 60_000
    hook.listedAt.set(id, sentMs + minutesLate * 60_000)
    hook.deliveries.unshift({
      id,
      guid,
      delivered_at: new Date(sentMs).toISOString(),
      redelivery: false,
      duration: 0.1,
      status: code === 0 ? 'failed to connect' : code < 300 ? 'OK' : 'Service Unavailable',
      status_code: code,
      event,
      action: typeof payload['action'] === 'string' ? payload['action'] : null,
      installation_id: null,
      repository_id: 1,
    })
    return guid
  }

  const { requests, next, close } = server
  const self: HookServer = {
    apiUrl,
    requests,
    next,
    close,
    hooks,
    addHook,
    miss,
    tunnel: undefined,
    aheadMs: 0,
    failing: undefined,
    scopes: ['repo'],
  }
  return self
}

/** Three days (docs.github.com: "Viewing webhook deliveries"). */
const keptMs = 3 * 24 * 60 * 60_000

/** As GitHub answers who asks too much at a time. */
export const secondaryLimit = (seconds: number) =>
  json(403, message('You have exceeded a secondary rate limit. Please wait a few minutes.'), {
    'retry-after': String(seconds),
  })

const patched = ['active', 'events', 'config']
const configKeys = ['url', 'content_type', 'secret', 'insecure_ssl']

type Document = Pick<Schemas['hook'], 'id' | 'active' | 'events' | 'config' | 'last_response'>

const toDocument = ({ id, active, events, config, deliveries }: StoredHook): Document => ({
  id,
  active,
  events,
  config: { url: config.url, content_type: 'json', insecure_ssl: '0', secret: '********' },
  last_response: {
    code: deliveries[0]?.status_code ?? null,
    status: null,
    message: deliveries[0]?.status ?? null,
  },
})

const message = (text: string): Schemas['basic-error'] => ({
  message: text,
  documentation_url: 'https://docs.github.com/rest',
})

const invalid = (reason: string) => ({
  ...message('Validation Failed'),
  errors: [{ resource: 'Hook', code: 'custom', message: reason }],
})

const pagingOf = (url: URL) => ({
  size: Number(url.searchParams.get('per_page') ?? 30),
  page: Number(url.searchParams.get('page') ?? 1),
})

const pageOf = (url: URL, items: readonly unknown[]) => {
  const { size, page } = pagingOf(url)
  return items.slice((page - 1) * size, page * size)
}

/** The body, when it has no fields but these: a misspelled one would have no effect at GitHub. */
const checked = <Body extends object>(body: Body, keys: readonly string[]): Body => {
  const foreign = Object.keys(body).filter((key) => !keys.includes(key))
  if (foreign.length > 0) throw new Error(`GitHub knows no field ${foreign.join(', ')}`)
  return body
}
