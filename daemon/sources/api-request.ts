import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { DeliveryError, TokenRefused } from '../delivery/delivery-error.ts'
import { requestTarget, type TargetResponse, toStatusError } from '../delivery/request.ts'
import { type TokenSource, withToken } from '../delivery/token.ts'
import { valueAt } from '../util/payload-path.ts'
import { parseExactly } from '../webhook/parse.ts'

const timeoutMs = 15_000
/** A hundred hooks or deliveries have less. */
const maxResponseBytes = 4 * 1024 * 1024
/** No repository has as many hooks as these pages hold. */
const maxPages = 10

export type ApiOptions = {
  readonly title: string
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly token: TokenSource
  /** Errors that only this sender has: a rate limit, a missing scope. */
  readonly toFailure: (path: string, response: TargetResponse) => DoorwardError | undefined
}

/** For a list of deliveries that is not there. */
export const goneHint =
  'the hook was deleted, or the account may not see it: doorward webhook hooks'

type RequestOptions = {
  readonly signal: AbortSignal
  readonly method?: 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly body?: object
  /** Returns a body of up to 40 MB as text too: a payload has 25 MB at most. */
  readonly isLarge?: boolean
  readonly etag?: string | undefined
  /** Statuses that the caller handles: they do not throw. */
  readonly handles?: readonly number[]
  /** What to do about a status, for messages. */
  readonly hints?: Readonly<Record<number, string>>
}

export type ApiRequest = (path: string, options: RequestOptions) => Promise<TargetResponse>

/** Requests below the base URL of a sender's API. They throw `source-failed`, or why there is no token. */
export const createApiRequest =
  ({ title, baseUrl, headers, token, toFailure }: ApiOptions): ApiRequest =>
  async (path, { signal, method, body, isLarge, etag, handles = [], hints = {} }) => {
    try {
      return await withToken(token, async (accessToken) => {
        const response = await requestTarget(new URL(`${baseUrl}${path}`), {
          target: title,
          method: method ?? 'GET',
          headers: {
            ...headers,
            authorization: `Bearer ${accessToken}`,
            ...(etag !== undefined && { 'if-none-match': etag }),
            ...(body && { 'content-type': 'application/json; charset=utf-8' }),
          },
          ...(body && { body: JSON.stringify(body) }),
          maxResponseBytes: isLarge ? 10 * maxResponseBytes : maxResponseBytes,
          keepsText: isLarge ?? false,
          attempt: { signal, timeoutMs },
        })
        const { status } = response
        if (status === 401) throw new TokenRefused()
        if (handles.includes(status)) return response
        const failure =
          toFailure(path, response) ?? toStatusError(title, response, { hint: hints[status] })
        if (failure) throw failure
        return response
      })
    } catch (error) {
      throw toSourceError(error)
    }
  }

const toSourceError = (error: unknown): unknown => {
  if (!(error instanceof DeliveryError) || error.code !== 'delivery-failed') return error
  const { message, hint, retryAfterMs } = error
  const seconds = retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs / 1000)
  return new DoorwardError('source-failed', message, {
    hint: hint ?? (seconds === undefined ? undefined : `try again in ${seconds} s`),
    retryAfterMs,
  })
}

/** All items of a list, by the `next` links of its pages (RFC 8288). */
export const listAll = async (
  request: ApiRequest,
  path: string,
  { title, baseUrl }: Pick<ApiOptions, 'title' | 'baseUrl'>,
  options: RequestOptions,
): Promise<readonly unknown[]> => {
  const items: unknown[] = []
  let next: string | undefined = path
  for (let page = 1; next !== undefined && page <= maxPages; page += 1) {
    const { json, headers }: TargetResponse = await request(next, options)
    if (!Array.isArray(json)) throw new DoorwardError('source-failed', `${title} returned no list`)
    items.push(...(json as readonly unknown[]))
    next = nextPath(headers['link']?.toString(), baseUrl)
  }
  return items
}

/** The path of the next page; the token goes to no other address than that of the API. */
export const nextPath = (link: string | undefined, baseUrl: string): string | undefined => {
  const [, url] = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(link ?? '') ?? []
  return url?.startsWith(`${baseUrl}/`) ? url.slice(baseUrl.length) : undefined
}

/** Ids have more digits than a number holds. */
export const parseText = (text = ''): unknown => {
  try {
    return parseExactly(text, Buffer.from(text))
  } catch {
    return undefined
  }
}

/** The words of a refusal that are safe to show, such as `Hook already exists on this repository`. */
export const describeRefusal = ({ json }: TargetResponse): string => {
  const errors = valueAt(json, ['errors'])
  const reasons = (Array.isArray(errors) ? (errors as unknown[]) : [])
    .map((error) => (typeof error === 'string' ? error : valueAt(error, ['message'])))
    .filter((reason) => typeof reason === 'string')
  const text = reasons.length > 0 ? reasons.join('; ') : valueAt(json, ['message'])
  return typeof text === 'string' ? toPlainLine(text).slice(0, 200) : 'it does not say why'
}
