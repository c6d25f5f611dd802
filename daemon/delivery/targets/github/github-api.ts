import { readGithubRefusal } from '../../../util/github-refusal.ts'
import { githubPauseMs } from '../../../util/http-retry-after.ts'
import { textAt } from '../../../util/payload-path.ts'
import { asReadOnly, DeliveryError, TokenRefused } from '../../delivery-error.ts'
import { requestTarget, type TargetResponse, toStatusError } from '../../request.ts'
import { type Asking, type Sent, toMade } from '../../sender.ts'
import { type Grant, type TokenSource, withToken } from '../../token.ts'

const github = 'github'
const githubApiUrl = 'https://api.github.com'
export const githubHeaders = {
  accept: 'application/vnd.github+json',
  'x-github-api-version': '2022-11-28',
}
const perPage = 100
/** A page of comments of the maximum length has 7 MB, and more with escapes. */
const maxResponseBytes = 16 * 1024 * 1024

type RequestOptions = {
  /** Sends this, by POST unless `method` says otherwise; without it the request only reads. */
  readonly body?: object
  readonly method?: 'PATCH' | 'PUT' | 'DELETE'
  /** Statuses that the caller handles: they do not throw. */
  readonly handles?: readonly number[]
}

/** One request below the base URL of the API, or to `/graphql`. Throws `DeliveryError`, or `TokenRefused`. */
export type GithubRequest = (path: string, options?: RequestOptions) => Promise<TargetResponse>

/** The way out of a status, for messages. */
export type Hints = Readonly<Record<number, string>>

const renamed = 'the repository was renamed: use its new name'
const redirects: Hints = { 301: renamed, 307: renamed, 308: renamed }

type Step = {
  readonly attempt: Asking
  readonly hints?: Hints
  /** The permissions of the step, for the token of a bot. */
  readonly grant?: Grant
  /** The bot of the rule, which answers where the configuration names no login and no token. */
  readonly bot?: string | undefined
}

/** Calls with requests that have the token of the target, and with the token. */
export type GithubApi = {
  <Value>(
    step: Step,
    call: (request: GithubRequest, accessToken: string) => Promise<Value>,
  ): Promise<Value>
  /** Where git finds the repositories: its links stay links. */
  readonly origin: string
  /** What a response says that was made. */
  readonly toMade: (what: string, response: Pick<TargetResponse, 'json'>) => Sent['made']
}

export const createGithubApi = (apiUrl: string | undefined, token: TokenSource): GithubApi => {
  const server = toGitOrigin(apiUrl)
  return Object.assign(createCall(apiUrl, token), {
    origin: server,
    toMade: (what: string, { json }: Pick<TargetResponse, 'json'>) =>
      toMade(what, textAt(json, 'html_url'), server),
  })
}

const createCall =
  (apiUrl = githubApiUrl, token: TokenSource) =>
  async <Value>(
    { attempt, hints = {}, grant, bot = token.provider }: Step,
    call: (request: GithubRequest, accessToken: string) => Promise<Value>,
  ): Promise<Value> => {
    const provider = token.isDefault ? bot : token.provider
    const whole = grant && { grant: { ...grant, apiUrl } }
    return withToken({ ...token, provider, ...whole }, async (accessToken) => {
      const request: GithubRequest = async (path, { body, method, handles = [] } = {}) => {
        const response = await requestTarget(toUrl(apiUrl, path), {
          target: github,
          ...(method && { method }),
          token: accessToken,
          headers: githubHeaders,
          json: body,
          ...(!body && { maxResponseBytes }),
          attempt,
        })
        const refusal = readGithubRefusal(response, toGitOrigin(apiUrl))
        const hint = refusal?.hint ?? { ...redirects, ...hints }[response.status]
        const failure = toFailure(response, { reason: refusal?.reason, hint }, handles)
        if (failure) throw failure
        return response
      }
      return call(request, accessToken)
    })
  }

/** GraphQL is beside the REST API: at api.github.com/graphql, or <host>/api/graphql. */
const toUrl = (apiUrl: string, path: string): URL =>
  new URL(`${path === '/graphql' ? apiUrl.replace(/\/api\/v3$/, '/api') : apiUrl}${path}`)

const toFailure = (
  response: TargetResponse,
  details: { readonly reason: string | undefined; readonly hint: string | undefined },
  handles: readonly number[],
): Error | undefined => {
  const { status, headers, json } = response
  if (status === 401) return new TokenRefused()
  const failure = toStatusError(github, response, details)
  if (!failure) return undefined
  const retryAfterMs = githubPauseMs({
    status,
    header: (name) => headers[name]?.toString(),
    message: json['message'],
  })
  if (retryAfterMs !== undefined)
    return new DeliveryError('retryable', `github rate limit reached (${status})`, { retryAfterMs })
  return handles.includes(status) ? undefined : failure
}

type List = {
  /** Has a question mark. */
  readonly path: string
  /** Its items, in messages. */
  readonly what: string
  /** Holds the list, where the response is an object. */
  readonly field?: string
  readonly maxPages?: number
}

/** The first item of a list that passes the test. */
export const findListed = async (
  request: GithubRequest,
  { path, what, field, maxPages = 10 }: List,
  test: (item: unknown) => boolean,
): Promise<unknown> => {
  for (let page = 1; page <= maxPages; page += 1) {
    const { json } = await asReadOnly(request(`${path}&per_page=${perPage}&page=${page}`))
    const list = field === undefined ? json : json[field]
    // A cut or foreign response does not say that it is missing.
    if (!Array.isArray(list)) throw new DeliveryError('retryable', `github returned no ${what}`)
    const items = list as readonly unknown[]
    const found = items.find(test)
    if (found !== undefined) return found
    if (items.length < perPage) return undefined
  }
  return undefined
}

/** The address at which git finds the repositories of an API: api.github.com, api.<tenant>.ghe.com or <host>/api/v3. */
export const toGitOrigin = (apiUrl = githubApiUrl): string => {
  const { protocol, host, pathname } = new URL(apiUrl)
  return `${protocol}//${pathname === '/' ? host.replace(/^api\./, '') : host}`
}
