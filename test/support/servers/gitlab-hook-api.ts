import { randomUUID } from 'node:crypto'
import { json, type Recorded, startTargetServer, type TargetServer } from './target-server.ts'

/*
 * GitLab's API of hooks (docs.gitlab.com/api/project_webhooks, api/group_webhooks) for the project
 * acme/tools/door and the group acme. Its test of a push is delivered for real, through `tunnel`.
 */

type StoredHook = {
  readonly id: number
  readonly owner: string
  fields: Readonly<Record<string, unknown>>
  /** Never returned. */
  token: string
  alertStatus: string
  /** The newest first. */
  readonly events: LoggedEvent[]
}

/** lib/api/entities/web_hook_log.rb */
type LoggedEvent = {
  readonly id: number
  readonly url: unknown
  readonly trigger: string
  readonly request_headers: Readonly<Record<string, string>>
  readonly request_data: Readonly<Record<string, unknown>>
  readonly response_status: string
  readonly created_at: string
}

type MissedEvent = {
  readonly payload: Readonly<Record<string, unknown>>
  readonly trigger?: string
  readonly minutesAgo?: number
  readonly status?: string
}

export type GitlabHookServer = Pick<TargetServer, 'requests' | 'next' | 'close'> & {
  readonly apiUrl: string
  readonly hooks: StoredHook[]
  /** As a person makes one in the browser. */
  readonly addHook: (owner: string, url: string) => StoredHook
  /** What was sent and did not arrive; returns its Idempotency-Key. */
  readonly miss: (hook: StoredHook, missed: MissedEvent) => string
  /** The daemon that the public address leads to. */
  tunnel: string | undefined
  hasScope: boolean
}

const flags =
  /^(push|tag_push|issues|merge_requests|note|pipeline|job|deployment|releases|feature_flag|wiki_page|emoji|milestone|resource_access_token|vulnerability|member|subgroup|project)_events$/
const others = ['url', 'token', 'enable_ssl_verification']

export const startGitlabHookServer = async (): Promise<GitlabHookServer> => {
  const hooks: StoredHook[] = []
  let lastId = 0
  const server = await startTargetServer(async (response, recorded, request) => {
    const [status, document] = await answer(recorded)
    if (status === 204) response.writeHead(204).end()
    else await json(status, document)(response, recorded, request)
  })

  const answer = async ({
    method,
    path,
    fields,
  }: Recorded): Promise<readonly [number, unknown]> => {
    const { pathname, searchParams } = new URL(path, 'http://loopback')
    const [, kind, name = '', id, rest] =
      /^\/api\/v4\/(projects|groups)\/([^/]+)\/hooks(?:\/(\d+))?(\/.+)?$/.exec(pathname) ?? []
    if (!self.hasScope) return [403, { error: 'insufficient_scope', scope: 'api' }]
    const owner = decodeURIComponent(name)
    if (owner !== (kind === 'projects' ? 'acme/tools/door' : 'acme'))
      return [404, { message: `404 ${kind === 'projects' ? 'Project' : 'Group'} Not Found` }]
    const own = hooks.filter((hook) => hook.owner === owner)
    if (id === undefined && method === 'GET') return [200, own.map(toDocument)]
    if (method === 'POST' || method === 'PUT')
      for (const key of Object.keys(fields))
        if (!flags.test(key) && !others.includes(key)) throw new Error(`GitLab knows no ${key}`)
    if (id === undefined) {
      const { token = '', ...rest } = fields
      if (/localhost/.test(String(fields['url']))) return [422, { message: 'Invalid url given' }]
      return [201, toDocument(makeHook(owner, rest, String(token)))]
    }
    const hook = own.find((one) => String(one.id) === id)
    if (!hook) return [404, { message: '404 Not found' }]
    switch (`${method} ${rest ?? ''}`) {
      case 'DELETE ':
        hooks.splice(hooks.indexOf(hook), 1)
        return [204, undefined]
      case 'PUT ': {
        const { token, ...changed } = fields
        // A new URL resets the secret.
        const isMoved = changed['url'] !== hook.fields['url']
        hook.token = String(token ?? (isMoved ? '' : hook.token))
        hook.fields = { ...hook.fields, ...changed }
        return [200, toDocument(hook)]
      }
      case 'POST /test/push_events':
        return deliverTest(hook)
      case 'GET /events':
        return listEvents(hook, searchParams)
    }
    return [404, { error: '404 Not Found' }]
  }

  const makeHook = (owner: string, fields: StoredHook['fields'], token: string): StoredHook => {
    const id = 10 + hooks.length
    const hook = { id, owner, fields, token, alertStatus: 'executable', events: [] }
    hooks.push(hook)
    return hook
  }

  /** Pages of twenty at most, of the last seven days (lib/api/hooks/events.rb, web_hook_log.rb). */
  const listEvents = (
    { events }: StoredHook,
    query: URLSearchParams,
  ): readonly [number, unknown] => {
    const size = Number(query.get('per_page') ?? 20)
    const page = Number(query.get('page') ?? 1)
    if (size > 20) return [400, { error: 'per_page does not have a valid value' }]
    const kept = events.filter(({ created_at: at }) => Date.parse(at) > Date.now() - keptMs)
    return [200, kept.slice((page - 1) * size, page * size)]
  }

  const miss = (
    hook: StoredHook,
    {
      payload,
      trigger = 'merge_request_hooks',
      minutesAgo = 0,
      status = 'internal error',
    }: MissedEvent,
  ): string => {
    const key = randomUUID()
    hook.events.unshift({
      id: (lastId += 1),
      url: hook.fields['url'],
      trigger,
      request_headers: {
        'Content-Type': 'application/json',
        'X-Gitlab-Event': toTitle(trigger),
        'X-Gitlab-Event-UUID': randomUUID(),
        'Idempotency-Key': key,
        'X-Gitlab-Token': '[REDACTED]',
      },
      request_data: payload,
      response_status: status,
      created_at: new Date(Date.now() - minutesAgo * 60_000).toISOString(),
    })
    return key
  }

  const deliverTest = async (hook: StoredHook): Promise<readonly [number, unknown]> => {
    const uuid = randomUUID()
    const headers = {
      'content-type': 'application/json',
      'x-gitlab-event': 'Push Hook',
      'x-gitlab-event-uuid': uuid,
      'idempotency-key': randomUUID(),
    }
    const { pathname } = new URL(String(hook.fields['url']))
    const got = await fetch(`${self.tunnel}${pathname}`, {
      method: 'POST',
      headers: { ...headers, 'x-gitlab-token': hook.token },
      body: JSON.stringify(push),
    }).catch(() => undefined)
    hook.events.unshift({
      id: (lastId += 1),
      url: hook.fields['url'],
      trigger: 'push_hooks',
      request_headers: {
        'Content-Type': 'application/json',
        'X-Gitlab-Event': 'Push Hook',
        'X-Gitlab-Event-UUID': uuid,
        'Idempotency-Key': headers['idempotency-key'],
        'X-Gitlab-Token': '[REDACTED]',
      },
      request_data: push,
      response_status: got ? String(got.status) : 'internal error',
      created_at: new Date().toISOString(),
    })
    if (got?.ok) hook.alertStatus = 'executable'
    return got?.ok ? [201, { message: '201 Created' }] : [422, { message: 'Hook execution failed' }]
  }

  const { origin, requests, next, close } = server
  const self: GitlabHookServer = {
    apiUrl: `${origin}/api/v4`,
    requests,
    next,
    close,
    hooks,
    addHook: (owner, url) => makeHook(owner, { url }, ''),
    miss,
    tunnel: undefined,
    hasScope: true,
  }
  return self
}

/** `merge_request_hooks` is `Merge Request Hook`. */
const toTitle = (trigger: string): string =>
  trigger
    .replace(/s$/, '')
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ')

const keptMs = 7 * 24 * 60 * 60_000
const push = { object_kind: 'push', ref: 'refs/heads/main', commits: [] }

const toDocument = ({ id, fields, alertStatus }: StoredHook) => ({
  id,
  ...fields,
  alert_status: alertStatus,
  disabled_until: null,
})
