import { hookScopes, type HookSettings } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { TargetResponse } from '../delivery/request.ts'
import type { TokenSource } from '../delivery/token.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import { createApiRequest, describeRefusal, listAll } from './api-request.ts'
import { gitlabDeliveries, toDelivery } from './gitlab-deliveries.ts'
import type { SenderHook, Source } from './source.ts'

const title = 'GitLab'

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
export const createGitlabSource = (apiUrl: string | undefined, token: TokenSource): Source => {
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
  return {
    title,
    listHooks: async (name, signal) => {
      const path = `${await hooksOf(name, signal)}?per_page=100`
      const list = await listAll(request, path, { title, baseUrl }, { signal, hints })
      return list.flatMap(toHook)
    },
    createHook: async (name, settings, signal) => {
      const path = await hooksOf(name, signal)
      const response = await request(path, {
        signal,
        hints,
        handles: [422],
        method: 'POST',
        body: toBody(settings, path),
      })
      const id = valueAt(response.json, ['id'])
      if (typeof id === 'number') return id
      throw refused(response)
    },
    updateHook: async ({ repository, hookId }, settings, signal) => {
      const path = await hooksOf(repository, signal)
      const response = await request(`${path}/${hookId}`, {
        signal,
        hints,
        handles: [422],
        method: 'PUT',
        // With the secret: a change of the URL alone would remove it.
        body: toBody(settings, path),
      })
      if (response.status === 422) throw refused(response)
    },
    deleteHook: async ({ repository, hookId }, signal) => {
      const path = await hooksOf(repository, signal)
      // Says whether the hooks may be seen at all: to others GitLab answers 404 too.
      await request(`${path}?per_page=1`, { signal, hints })
      const options = { signal, hints, handles: [404], method: 'DELETE' } as const
      const { status } = await request(`${path}/${hookId}`, options)
      return status !== 404
    },
    pingHook: async ({ repository, hookId }, signal) => {
      const path = await hooksOf(repository, signal)
      // 422: the address did not answer 2xx, or there is no commit yet. Whether one came is seen here.
      const options = { signal, hints, handles: [422], method: 'POST' } as const
      await request(`${path}/${hookId}/test/push_events`, options)
    },
    lastDeliveries: async ({ repository, hookId }, signal) => {
      const path = `${await hooksOf(repository, signal)}/${hookId}/events?per_page=20`
      // Before GitLab 17.3 there is no such list.
      const { json } = await request(path, { signal, hints, handles: [404] })
      return (Array.isArray(json) ? (json as unknown[]) : []).flatMap(toDelivery)
    },
    past: gitlabDeliveries(request, hooksOf),
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

const refused = (response: TargetResponse): DoorwardError =>
  new DoorwardError('source-failed', `${title} refuses the hook: ${describeRefusal(response)}`, {
    hint: 'does server.public_url name an address that GitLab can reach?',
  })

/** RFC 6750 section 3.1, as GitLab answers it. */
const toFailure = (
  { status, json }: TargetResponse,
  { tokenEnv, provider = 'gitlab' }: TokenSource,
): DoorwardError | undefined => {
  if (status !== 403 || json['error'] !== 'insufficient_scope') return undefined
  const [scope] = hookScopes('gitlab', '')
  return new DoorwardError('scope-missing', `the token may not manage hooks: it lacks ${scope}`, {
    hint:
      tokenEnv === undefined
        ? `doorward oauth login ${provider} --scopes openid,${scope}`
        : `give the token in ${tokenEnv} the scope ${scope}`,
  })
}

const hints = {
  301: 'it was moved: use its new path',
  403: 'only maintainers of a project and owners of a group manage its hooks',
  404: 'there is no such project or group, or the account does not administer it',
}
