import { type HookRef, hookScopes, type HookSettings } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { type TargetResponse, toStatusError } from '../delivery/request.ts'
import type { TokenSource } from '../delivery/token.ts'
import { githubHeaders, toGitOrigin } from '../delivery/targets/github/github-api.ts'
import { readGithubRefusal } from '../util/github-refusal.ts'
import { githubPauseMs } from '../util/http-retry-after.ts'
import { listAt, textAt, valueAt } from '../util/payload-path.ts'
import { type ApiRequest, createApiRequest, goneHint, nextPath } from './api-request.ts'
import { createHookCalls, scopeMissing, toList } from './hook-calls.ts'
import { listPast, toFetched } from './sender-api.ts'
import type { Past, PastDelivery, SenderHook, SenderApi } from './sender-api.ts'

const title = 'GitHub'
const perPage = 100

/**
 * The hooks of repositories and organisations (docs.github.com/rest/repos/webhooks, rest/orgs/webhooks). An
 * OAuth app sees only those hooks of an organisation that it made.
 */
export const createGithubHooks = (apiUrl: string | undefined, token: TokenSource): SenderApi => {
  const baseUrl = (apiUrl ?? 'https://api.github.com').replace(/\/+$/, '')
  const request = createApiRequest({
    title,
    baseUrl,
    headers: githubHeaders,
    token,
    toFailure: (path, response) => toFailure(path, response, token) ?? toRefusal(response, baseUrl),
  })
  const calls = createHookCalls({
    title,
    baseUrl,
    request,
    hooksOf,
    toBody,
    newBody: { name: 'web' },
    toHook,
    updateMethod: 'PATCH',
    pingPath: 'pings',
    lastPath: 'deliveries?per_page=30',
    toDelivery,
    hints,
  })
  return { title, ...calls, past: createPast(request, baseUrl) }
}

/**
 * The deliveries that GitHub keeps for three days. It lists the newest first and filters by no time; one can
 * appear minutes after it was sent.
 */
export const createPast = (request: ApiRequest, baseUrl: string, deliveriesOf = ofHook): Past => ({
  list: async (hook, { ms, etag }, signal) => {
    let path = `${deliveriesOf(hook)}?per_page=${perPage}`
    return listPast(ms, perPage, async (page) => {
      const given = page === 1 ? etag : undefined
      const options = { signal, etag: given, handles: [304], hints: pastHints }
      const { status, json, headers } = await request(path, options)
      if (status === 304) return 'same'
      const next = nextPath(headers['link']?.toString(), baseUrl)
      path = next ?? path
      const deliveries = toList(json, title).flatMap(toDelivery)
      return { deliveries, headers, hasMore: next !== undefined }
    })
  },
  fetch: async (hook, id, signal) => {
    const path = `${deliveriesOf(hook)}/${encodeURIComponent(id)}`
    // 404 and 410: it is too old.
    const { json } = await request(path, { signal, handles: [404, 410], hints: pastHints })
    return toFetched(valueAt(json, ['request', 'payload']), valueAt(json, ['request', 'headers']))
  },
})

const hooksOf = (repository: string): string =>
  repository.includes('/') ? `/repos/${repository}/hooks` : `/orgs/${repository}/hooks`

const ofHook = ({ repository, hookId }: HookRef): string =>
  `${hooksOf(repository)}/${hookId}/deliveries`

const toBody = ({ url, secret, events }: HookSettings) => ({
  active: true,
  events,
  config: { url, content_type: 'json', secret, insecure_ssl: '0' },
})

const toHook = (item: unknown): SenderHook[] => {
  const id = valueAt(item, ['id'])
  if (typeof id !== 'number') return []
  return [
    {
      id,
      url: textAt(item, 'config', 'url') ?? '',
      isActive: valueAt(item, ['active']) === true,
      events: listAt(item, 'events').map(String),
    },
  ]
}

const toDelivery = (item: unknown): PastDelivery[] => {
  const id = valueAt(item, ['id'])
  const deliveryId = textAt(item, 'guid')
  const at = textAt(item, 'delivered_at')
  if ((typeof id !== 'number' && typeof id !== 'string') || deliveryId === undefined) return []
  if (at === undefined) return []
  const action = textAt(item, 'action')
  const code = Number(valueAt(item, ['status_code']))
  const words = `${code > 0 ? code : ''} ${textAt(item, 'status') ?? ''}`
  return [
    {
      id: String(id),
      deliveryId,
      at,
      event: textAt(item, 'event') ?? '',
      isOk: code >= 200 && code < 300,
      isAccepted: code === 202,
      answer: toPlainLine(words).slice(0, 100),
      ...(action !== undefined && { action }),
    },
  ]
}

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
  return scopeMissing(token, needed[0], scopes)
}

const toRefusal = (response: TargetResponse, baseUrl: string): DoorwardError | undefined => {
  const refusal = readGithubRefusal(response, toGitOrigin(baseUrl))
  return refusal && toStatusError(title, response, { ...refusal, hint: refusal.hint ?? hints[403] })
}

const pastHints = { 404: goneHint }
const hints = {
  301: 'it was renamed: use its new name',
  307: 'it was renamed: use its new name',
  403: 'only its administrators manage hooks; an organisation may have to allow the OAuth app first',
  404: 'there is no such repository or organisation, or the account does not administer it',
}
