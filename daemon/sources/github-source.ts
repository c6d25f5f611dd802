import { hookScopes, type HookSettings } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { TargetResponse } from '../delivery/request.ts'
import type { TokenSource } from '../delivery/token.ts'
import { githubPauseMs } from '../util/http-retry-after.ts'
import { valueAt } from '../util/payload-path.ts'
import { createApiRequest, describeRefusal, listAll } from './api-request.ts'
import { githubDeliveries, hooksOf, toDelivery } from './github-deliveries.ts'
import type { SenderHook, Source } from './source.ts'

const title = 'GitHub'

/**
 * The hooks of repositories and organisations (docs.github.com/rest/repos/webhooks, rest/orgs/webhooks). An
 * OAuth app sees only those hooks of an organisation that it made.
 */
export const createGithubSource = (apiUrl: string | undefined, token: TokenSource): Source => {
  const baseUrl = (apiUrl ?? 'https://api.github.com').replace(/\/+$/, '')
  const request = createApiRequest({
    title,
    baseUrl,
    headers: { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' },
    token,
    toFailure: (path, response) => toFailure(path, response, token),
  })
  return {
    title,
    listHooks: async (repository, signal) => {
      const path = `${hooksOf(repository)}?per_page=100`
      const list = await listAll(request, path, { title, baseUrl }, { signal, hints })
      return list.flatMap(toHook)
    },
    createHook: async (repository, settings, signal) => {
      const response = await request(hooksOf(repository), {
        signal,
        hints,
        handles: [422],
        body: { name: 'web', ...toBody(settings) },
        method: 'POST',
      })
      if (response.status === 422) throw refused(response)
      const id = valueAt(response.json, ['id'])
      if (typeof id !== 'number')
        throw new DoorwardError('source-failed', `${title} did not say which hook it made`)
      return id
    },
    updateHook: async ({ repository, hookId }, settings, signal) => {
      const response = await request(`${hooksOf(repository)}/${hookId}`, {
        signal,
        hints,
        handles: [422],
        // Whole: without its secret, GitHub would remove it.
        body: toBody(settings),
        method: 'PATCH',
      })
      if (response.status === 422) throw refused(response)
    },
    deleteHook: async ({ repository, hookId }, signal) => {
      // Says whether it may be seen at all: GitHub answers 404 without the scope too.
      await request(`${hooksOf(repository)}?per_page=1`, { signal, hints })
      const path = `${hooksOf(repository)}/${hookId}`
      const { status } = await request(path, { signal, method: 'DELETE', hints, handles: [404] })
      return status !== 404
    },
    pingHook: async ({ repository, hookId }, signal) => {
      await request(`${hooksOf(repository)}/${hookId}/pings`, { signal, method: 'POST', hints })
    },
    lastDeliveries: async ({ repository, hookId }, signal) => {
      const path = `${hooksOf(repository)}/${hookId}/deliveries?per_page=30`
      const { json } = await request(path, { signal, hints })
      return (Array.isArray(json) ? (json as unknown[]) : []).flatMap(toDelivery)
    },
    past: githubDeliveries(request, baseUrl),
  }
}

const toBody = ({ url, secret, events }: HookSettings) => ({
  active: true,
  events,
  config: { url, content_type: 'json', secret, insecure_ssl: '0' },
})

const toHook = (item: unknown): SenderHook[] => {
  const id = valueAt(item, ['id'])
  if (typeof id !== 'number') return []
  const events = valueAt(item, ['events'])
  const code = valueAt(item, ['last_response', 'code'])
  const words = valueAt(item, ['last_response', 'message'])
  return [
    {
      id,
      url: String(valueAt(item, ['config', 'url']) ?? ''),
      isActive: valueAt(item, ['active']) === true,
      events: (Array.isArray(events) ? (events as unknown[]) : []).map(String),
      ...(typeof code === 'number' && {
        lastAnswer: toPlainLine(`${code} ${typeof words === 'string' ? words : ''}`).slice(0, 100),
      }),
    },
  ]
}

const refused = (response: TargetResponse): DoorwardError =>
  new DoorwardError('source-failed', `${title} refuses the hook: ${describeRefusal(response)}`, {
    hint: 'does server.public_url name an address that GitHub can reach?',
  })

/** A rate limit, or a scope that the token lacks: GitHub answers 403 or 404 to both. */
const toFailure = (
  path: string,
  { status, headers, json }: TargetResponse,
  token: TokenSource,
): DoorwardError | undefined => {
  const retryAfterMs = githubPauseMs({
    status,
    header: (name) => headers[name]?.toString(),
    message: json['message'],
  })
  if (retryAfterMs !== undefined)
    return new DoorwardError('source-failed', `GitHub rate limit reached (${status})`, {
      hint: `try again in ${Math.ceil(retryAfterMs / 1000)} s`,
      retryAfterMs,
    })
  // Empty or missing for tokens that have permissions instead of scopes.
  const granted = headers['x-oauth-scopes']?.toString().trim() ?? ''
  if ((status !== 403 && status !== 404) || granted === '') return undefined
  const needed = hookScopes('github', path.startsWith('/orgs/') ? 'name' : 'owner/name')
  const scopes = granted.split(',').map((scope) => scope.trim())
  if (needed.some((scope) => scopes.includes(scope))) return undefined
  const [first] = needed
  const { tokenEnv, provider = 'github' } = token
  return new DoorwardError('scope-missing', `the token may not manage hooks: it lacks ${first}`, {
    hint:
      tokenEnv === undefined
        ? `doorward oauth login ${provider} --scopes ${[...scopes, first].join(',')}`
        : `give the token in ${tokenEnv} the scope ${first}`,
  })
}

const hints = {
  301: 'it was renamed: use its new name',
  307: 'it was renamed: use its new name',
  403: 'only its administrators manage hooks; an organisation may have to allow the OAuth app first',
  404: 'there is no such repository or organisation, or the account does not administer it',
}
