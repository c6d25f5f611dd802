import { DoorwardError } from '../../shared/errors.ts'
import { DeliveryError, TokenRefused } from '../delivery/delivery-error.ts'
import { requestTarget, type TargetResponse, toStatusError } from '../delivery/request.ts'
import { type TokenSource, withToken } from '../delivery/token.ts'
import { parseExactly } from '../util/exact-json.ts'

const timeoutMs = 15_000
/** A payload has 25 MB at most. */
const maxResponseBytes = 40 * 1024 * 1024

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
  readonly etag?: string | undefined
  /** Statuses that the caller handles: they do not throw. */
  readonly handles?: readonly number[]
  /** The way out of a status, for messages. */
  readonly hints?: Readonly<Record<number, string>>
}

/** Its `json` is undefined where the body is not JSON, or was cut. */
export type ApiResponse = Pick<TargetResponse, 'status' | 'headers'> & { readonly json: unknown }
export type ApiRequest = (path: string, options: RequestOptions) => Promise<ApiResponse>

/** Requests below the base URL of a sender's API. They throw `source-failed`, or why there is no token. */
export const createApiRequest =
  ({ title, baseUrl, headers, token, toFailure }: ApiOptions): ApiRequest =>
  async (path, { signal, method, body, etag, handles = [], hints = {} }) => {
    try {
      return await withToken(token, async (accessToken) => {
        const response = await requestTarget(new URL(`${baseUrl}${path}`), {
          target: title,
          ...(method && { method }),
          token: accessToken,
          headers: { ...headers, ...(etag !== undefined && { 'if-none-match': etag }) },
          json: body,
          maxResponseBytes,
          attempt: { signal, timeoutMs },
        })
        const { status, text } = response
        if (status === 401) throw new TokenRefused()
        const failure =
          toFailure(path, response) ?? toStatusError(title, response, { hint: hints[status] })
        if (failure && !handles.includes(status)) throw failure
        return { status, headers: response.headers, json: parseText(text) }
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

/** The path of the next page; the token goes to no other address than that of the API. */
export const nextPath = (link: string | undefined, baseUrl: string): string | undefined => {
  const [, url] = /<([^>]*)>\s*;[^,]*\brel="?next"?/.exec(link ?? '') ?? []
  return url?.startsWith(`${baseUrl}/`) ? url.slice(baseUrl.length) : undefined
}

/** Ids have more digits than a number holds. */
export const parseText = (text: string): unknown => {
  try {
    return parseExactly(text, Buffer.from(text))
  } catch {
    return undefined
  }
}
