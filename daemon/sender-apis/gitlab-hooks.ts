import { isDeepStrictEqual } from 'node:util'
import { type HookRef, hookScopes, type HookSettings } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { TargetResponse } from '../delivery/request.ts'
import type { TokenSource } from '../delivery/token.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import { type ApiRequest, createApiRequest, goneHint } from './api-request.ts'
import { createHookCalls, type HookDialect, scopeMissing, toList } from './hook-calls.ts'
import {
  listPast,
  toFetched,
  maxListed,
  type Past,
  type PastDelivery,
  type SenderHook,
  type SenderApi,
} from './sender-api.ts'

const title = 'GitLab'
/** GitLab refuses more. */
const perPage = 20

/** The switches of a hook by the event that they are for, as a payload names it in `object_kind`. */
const projectSwitches: Readonly<Record<string, string>> = {
  push: 'push_events',
  tag_push: 'tag_push_events',
  issue: 'issues_events',
  work_item: 'issues_events',
  merge_request: 'merge_requests_events',
  note: 'note_events',
  pipeline: 'pipeline_events',
  build: 'job_events',
  deployment: 'deployment_events',
  release: 'releases_events',
  feature_flag: 'feature_flag_events',
  wiki_page: 'wiki_page_events',
  emoji: 'emoji_events',
  milestone: 'milestone_events',
  access_token: 'resource_access_token_events',
  resource_access_token: 'resource_access_token_events',
  vulnerability: 'vulnerability_events',
}
const switches: Readonly<Record<string, string>> = {
  ...projectSwitches,
  member: 'member_events',
  subgroup: 'subgroup_events',
  project: 'project_events',
}

/** The hooks of projects and groups (docs.gitlab.com/api/project_webhooks, api/group_webhooks). */
export const createGitlabHooks = (apiUrl: string | undefined, token: TokenSource): SenderApi => {
  const baseUrl = (apiUrl ?? 'https://gitlab.com/api/v4').replace(/\/+$/, '')
  const request = createApiRequest({
    title,
    baseUrl,
    headers: { accept: 'application/json' },
    token,
    toFailure: (_, response) => toFailure(response, token),
  })
  /** Only GitLab knows which of both a path with a slash names. */
  const hooksOf = async (name: string, signal: AbortSignal): Promise<string> => {
    const [project, group] = ['projects', 'groups'].map(
      (kind) => `/${kind}/${encodeURIComponent(name)}/hooks`,
    ) as [string, string]
    if (!name.includes('/')) return group
    const options = { signal, hints, handles: [404] }
    const { status } = await request(`${project}?per_page=1`, options)
    return status === 404 ? group : project
  }
  const calls = createHookCalls({
    title,
    baseUrl,
    request,
    hooksOf,
    toBody,
    toHook,
    updateMethod: 'PUT',
    pingPath: 'test/push_events',
    lastPath: 'events?per_page=20',
    toDelivery: toDelivery(1),
    hints,
  })
  return { title, ...calls, past: createPast(request, hooksOf) }
}

/**
 * The deliveries that GitLab keeps for seven days, since version 17.3. Its list has them whole, the newest
 * first; there is none of one delivery, so its page is read again. Mail addresses in them are replaced by
 * `[REDACTED]`.
 */
const createPast = (request: ApiRequest, hooksOf: HookDialect['hooksOf']): Past => {
  const eventsOf = async ({ repository, hookId }: HookRef, signal: AbortSignal) =>
    `${await hooksOf(repository, signal)}/${hookId}/events`
  const readPage = async (path: string, page: number, signal: AbortSignal) => {
    const query = `?per_page=${perPage}&page=${page}`
    const { json, headers } = await request(`${path}${query}`, { signal, hints: pastHints })
    const items = toList(json, title)
    return { items, headers, hasMore: items.length === perPage }
  }
  return {
    list: async (hook, { ms }, signal) => {
      const path = await eventsOf(hook, signal)
      return listPast(ms, perPage, async (page) => {
        const { items, ...more } = await readPage(path, page, signal)
        return { deliveries: items.flatMap(toDelivery(page)), ...more }
      })
    },
    fetch: async (hook, place, signal) => {
      const path = await eventsOf(hook, signal)
      const [first = 1, id = 0] = place.split(':').map(Number)
      // Newer deliveries push it to a later page.
      for (let page = first; page <= maxListed / perPage; page += 1) {
        const { items, hasMore } = await readPage(path, page, signal)
        const item = items.find((each) => valueAt(each, ['id']) === id)
        const payload = valueAt(item, ['request_data'])
        // GitLab keeps this instead of a payload that is too large.
        if (isDeepStrictEqual(payload, { oversize: true })) return undefined
        if (item !== undefined) return toFetched(payload, valueAt(item, ['request_headers']))
        if (!hasMore || items.every((each) => Number(valueAt(each, ['id'])) < id)) return undefined
      }
      return undefined
    },
  }
}

const toBody = ({ url, secret, events }: HookSettings, path: string) => {
  const known = path.startsWith('/groups/') ? switches : projectSwitches
  const unknown = events.find((event) => event !== '*' && !Object.hasOwn(known, event))
  if (unknown !== undefined)
    throw new DoorwardError('config-invalid', `${title} has no hook for the event ${unknown}`, {
      hint: `one of ${Object.keys(known).join(', ')}`,
    })
  const wanted = new Set(events.map((event) => known[event]))
  const flags = Object.values(known).map((flag) => [flag, events.includes('*') || wanted.has(flag)])
  return {
    url,
    token: secret,
    enable_ssl_verification: true,
    ...(Object.fromEntries(flags) as Record<string, boolean>),
  }
}

const toHook = (item: unknown): SenderHook[] => {
  const id = valueAt(item, ['id'])
  if (typeof id !== 'number') return []
  const on = Object.entries(switches).filter(([, flag]) => valueAt(item, [flag]) === true)
  // GitLab switches a hook off after failures.
  const status = textAt(item, 'alert_status') ?? 'executable'
  return [
    {
      id,
      url: textAt(item, 'url') ?? '',
      isActive: status === 'executable',
      events: on.map(([event]) => event),
    },
  ]
}

/** Headers that name a delivery, in the order of the scheme. */
const idHeaders = ['webhook-id', 'idempotency-key', 'x-gitlab-event-uuid']

const toDelivery =
  (page: number) =>
  (item: unknown): PastDelivery[] => {
    const id = valueAt(item, ['id'])
    const at = textAt(item, 'created_at')
    const headers = Object.entries(valueAt(item, ['request_headers']) ?? {})
    const [deliveryId] = idHeaders.flatMap((name) =>
      headers.flatMap(([key, value]) =>
        key.toLowerCase() === name && typeof value === 'string' ? [value] : [],
      ),
    )
    if (typeof id !== 'number' || at === undefined || deliveryId === undefined) return []
    const action = textAt(item, 'request_data', 'object_attributes', 'action')
    const answer = toPlainLine(String(valueAt(item, ['response_status']) ?? '')).slice(0, 100)
    const trigger = (textAt(item, 'trigger') ?? '').replace(/_hooks$/, '')
    return [
      {
        id: `${page}:${id}`,
        deliveryId,
        at,
        event: textAt(item, 'request_data', 'object_kind') ?? trigger,
        isOk: /^2\d\d$/.test(answer),
        isAccepted: answer === '202',
        answer,
        ...(action !== undefined && { action }),
      },
    ]
  }

/** RFC 6750 section 3.1, as GitLab answers it. */
const toFailure = (
  { status, json }: TargetResponse,
  token: TokenSource,
): DoorwardError | undefined =>
  status === 403 && json['error'] === 'insufficient_scope'
    ? scopeMissing(token, hookScopes('gitlab', '')[0], ['openid'])
    : undefined

const pastHints = {
  404: `${goneHint}; before GitLab 17.3 there is no such list: write catch_up: off`,
}
const hints = {
  301: 'it was moved: use its new path',
  403: 'only maintainers of a project and owners of a group manage its hooks',
  404: 'there is no such project or group, or the account does not administer it',
}
