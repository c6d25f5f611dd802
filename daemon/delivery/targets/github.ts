import { githubPauseMs } from '../../util/http-retry-after.ts'
import { textAt } from '../../util/payload-path.ts'
import { DeliveryError, TokenRefused, asReadOnly } from '../delivery-error.ts'
import { toStatusError, requestTarget, type TargetResponse } from '../request.ts'
import type { CommentMarks } from '../loop-guard.ts'
import type { Sender } from '../sender.ts'
import { type TokenSource, withToken } from '../token.ts'

const github = 'github'
const perPage = 100
const maxPages = 10
/** A page of comments of the maximum length has 7 MB, and more with escapes. */
const maxResponseBytes = 16 * 1024 * 1024
/** Maximum age of a comment of an earlier attempt. */
const maxAgeMs = 24 * 60 * 60 * 1000

/**
 * Comments on issues and pull requests (docs.github.com/rest/issues/comments). Each begins with a hidden
 * mark, by which a repeat finds the comment of an earlier attempt.
 */
export const createGithub = (
  apiUrl: string | undefined,
  token: TokenSource,
  marks: CommentMarks,
): Sender => ({
  isIdempotent: true,
  send: async ({ address: issue, text, part, reply }, attempt) => {
    const [repository = '', number = ''] = issue.split('#')
    const url = `${apiUrl ?? 'https://api.github.com'}/repos/${repository}/issues/${number}/comments`
    const mark = marks.markFor(reply.eventId, part, text)
    return withToken(token, async (accessToken) => {
      const request = async (address: string, body?: object): Promise<TargetResponse> => {
        const response = await requestTarget(new URL(address), {
          target: github,
          method: body ? 'POST' : 'GET',
          headers: {
            authorization: `Bearer ${accessToken}`,
            accept: 'application/vnd.github+json',
            'x-github-api-version': '2022-11-28',
            ...(body && { 'content-type': 'application/json; charset=utf-8' }),
          },
          ...(body ? { body: JSON.stringify(body) } : { maxResponseBytes }),
          attempt,
        })
        const failure = toFailure(response)
        if (failure) throw failure
        return response
      }
      if (attempt.mayHaveArrived && (await hasComment(url, mark, request)))
        return 'an earlier attempt had arrived'
      await request(url, { body: marks.toBody(mark, text) })
      return undefined
    })
  },
})

const hasComment = async (
  url: string,
  mark: string,
  request: (url: string) => Promise<TargetResponse>,
): Promise<boolean> => {
  const since = new Date(Date.now() - maxAgeMs).toISOString()
  for (let page = 1; page <= maxPages; page += 1) {
    const { json } = await asReadOnly(
      request(`${url}?since=${since}&per_page=${perPage}&page=${page}`),
    )
    // A cut or foreign response does not say that it is missing.
    if (!Array.isArray(json)) throw new DeliveryError('retryable', 'github returned no comments')
    const comments = json as readonly unknown[]
    if (comments.some((comment) => textAt(comment, 'body')?.startsWith(mark))) return true
    if (comments.length < perPage) return false
  }
  return false
}

const hints: Readonly<Record<number, string>> = {
  301: 'the repository was renamed: use its new name',
  307: 'the repository was renamed: use its new name',
  308: 'the repository was renamed: use its new name',
  403: 'the token may not comment there: it needs the scope repo, or write access to issues; or the conversation is locked',
  404: 'there is no such issue, or the token may not see it (scope repo)',
  410: 'the issue was deleted, or the repository has no issues',
  422: 'GitHub rejects this comment',
}

const toFailure = (response: TargetResponse): Error | undefined => {
  const { status, headers, json } = response
  if (status === 401) return new TokenRefused()
  const failure = toStatusError(github, response, { hint: hints[status] })
  if (!failure) return undefined
  const retryAfterMs = githubPauseMs({
    status,
    header: (name) => headers[name]?.toString(),
    message: json['message'],
  })
  if (retryAfterMs === undefined) return failure
  return new DeliveryError('retryable', `github rate limit reached (${status})`, { retryAfterMs })
}
