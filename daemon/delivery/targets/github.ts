import { githubPauseMs } from '../../util/http-retry-after.ts'
import { DeliveryError, TokenRefused, lookingOnly } from '../delivery-error.ts'
import { failureOfAnswer, requestTarget, type TargetAnswer } from '../request.ts'
import type { CommentMarks } from '../loop-guard.ts'
import type { Sender } from '../sender.ts'
import { type TokenSource, withToken } from '../token.ts'

const github = 'github'
const perPage = 100
const maxPages = 10
/** A page of comments that are as long as they may be is 7 MB, and more with its escapes. */
const maxAnswerBytes = 16 * 1024 * 1024
/** How old a comment of an earlier try can be: a retry is only possible while the event is in memory. */
const lookBackMs = 24 * 60 * 60 * 1000

/**
 * Comments on issues and pull requests (docs.github.com/rest/issues/comments). Each begins with a hidden
 * mark, which is looked for before a comment that may have arrived is sent again.
 */
export const createGithub = (
  apiUrl: string | undefined,
  token: TokenSource,
  marks: CommentMarks,
): Sender => ({
  knowsRepeats: true,
  send: async ({ address, text, part, answered }, attempt) => {
    const [repository = '', number = ''] = address.split('#')
    const comments = `${apiUrl ?? 'https://api.github.com'}/repos/${repository}/issues/${number}/comments`
    const mark = marks.markFor(answered.eventId, part, text)
    return withToken(token, async (accessToken) => {
      const request = async (url: string, body?: object): Promise<TargetAnswer> => {
        const answer = await requestTarget(new URL(url), {
          target: github,
          method: body ? 'POST' : 'GET',
          headers: {
            authorization: `Bearer ${accessToken}`,
            accept: 'application/vnd.github+json',
            'x-github-api-version': '2022-11-28',
            ...(body && { 'content-type': 'application/json; charset=utf-8' }),
          },
          ...(body ? { body: JSON.stringify(body) } : { maxAnswerBytes }),
          attempt,
        })
        const failure = toFailure(answer)
        if (failure) throw failure
        return answer
      }
      if (attempt.mayHaveArrived && (await isThere(comments, mark, request)))
        return 'an earlier try had arrived'
      await request(comments, { body: marks.bodyOf(mark, text) })
      return undefined
    })
  },
})

const isThere = async (
  comments: string,
  mark: string,
  request: (url: string) => Promise<TargetAnswer>,
): Promise<boolean> => {
  const since = new Date(Date.now() - lookBackMs).toISOString()
  for (let page = 1; page <= maxPages; page += 1) {
    const { json } = await lookingOnly(
      request(`${comments}?since=${since}&per_page=${perPage}&page=${page}`),
    )
    // Cut off, or of something else: it may be there, unseen.
    if (!Array.isArray(json)) throw new DeliveryError('later', 'github gave no list of comments')
    const found = json as readonly unknown[]
    if (found.some((comment) => getBody(comment).startsWith(mark))) return true
    if (found.length < perPage) return false
  }
  return false
}

const getBody = (comment: unknown): string =>
  typeof comment === 'object' &&
  comment !== null &&
  'body' in comment &&
  typeof comment.body === 'string'
    ? comment.body
    : ''

const hints: Readonly<Record<number, string>> = {
  301: 'the repository has another name now: write that one',
  307: 'the repository has another name now: write that one',
  308: 'the repository has another name now: write that one',
  403: 'the token may not comment there: it needs the scope repo, or write access to issues; or the conversation is locked',
  404: 'there is no such issue, or the token may not see it (scope repo)',
  410: 'the issue was deleted, or the repository has no issues',
  422: 'GitHub cannot use this comment',
}

const toFailure = (answer: TargetAnswer): Error | undefined => {
  const { status, headers, json } = answer
  if (status === 401) return new TokenRefused()
  const failure = failureOfAnswer(github, answer, { hint: hints[status] })
  if (!failure) return undefined
  const retryAfterMs = githubPauseMs({
    status,
    header: (name) => headers[name]?.toString(),
    message: json['message'],
  })
  if (retryAfterMs === undefined) return failure
  return new DeliveryError('later', `github takes no more for now (${status})`, { retryAfterMs })
}
