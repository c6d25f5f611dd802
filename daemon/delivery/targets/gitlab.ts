import { textAt } from '../../util/payload-path.ts'
import { DeliveryError, TokenRefused, asReadOnly } from '../delivery-error.ts'
import { toStatusError, requestTarget, type TargetResponse } from '../request.ts'
import type { CommentMarks } from '../loop-guard.ts'
import type { Asking, Sender } from '../sender.ts'
import { needsOf, type TokenSource, withToken } from '../token.ts'

const gitlab = 'gitlab'
const perPage = 100
const maxPages = 10
/** A note may have a megabyte. */
const maxResponseBytes = 16 * 1024 * 1024
/** Maximum age of a note of an earlier attempt. */
const maxAgeMs = 24 * 60 * 60 * 1000

/**
 * Notes on merge requests and issues (docs.gitlab.com/api/notes). Each begins with a hidden mark, by which a
 * repeat finds the note of an earlier attempt.
 */
export const createGitlab = (
  apiUrl = 'https://gitlab.com/api/v4',
  token: TokenSource,
  marks: CommentMarks,
): Sender => ({
  isIdempotent: true,
  send: async ({ address, text, part, reply }, attempt) => {
    const [, project = '', sign = '', number = ''] = /^(.*)([!#])(\d+)$/.exec(address) ?? []
    const kind = sign === '!' ? 'merge_requests' : 'issues'
    const url = `${apiUrl}/projects/${encodeURIComponent(project)}/${kind}/${number}/notes`
    const mark = marks.markFor(reply.eventId, part, text)
    return withToken(token, async (accessToken) => {
      const request = createRequest(accessToken, attempt)
      if (attempt.mayHaveArrived && (await hasNote(url, mark, request)))
        return 'an earlier attempt had arrived'
      await request(url, { body: marks.toBody(mark, text) })
      return undefined
    })
  },
  needs: needsOf(token, ['api']),
  // docs.gitlab.com/api/users/#get-the-current-user
  check: async (_, asking) =>
    withToken(token, async (accessToken) => createRequest(accessToken, asking)(`${apiUrl}/user`)),
})

const createRequest =
  (accessToken: string, attempt: Asking) =>
  async (to: string, body?: object): Promise<TargetResponse> => {
    const response = await requestTarget(new URL(to), {
      target: gitlab,
      // Access tokens of any kind are bearer tokens too (docs.gitlab.com/api/rest/authentication).
      token: accessToken,
      headers: { accept: 'application/json' },
      json: body,
      ...(!body && { maxResponseBytes }),
      attempt,
    })
    const { status } = response
    if (status === 401) throw new TokenRefused()
    const failure = toStatusError(gitlab, response, { hint: hints[status] })
    if (failure) throw failure
    return response
  }

const hasNote = async (
  url: string,
  mark: string,
  request: (url: string) => Promise<TargetResponse>,
): Promise<boolean> => {
  const since = new Date(Date.now() - maxAgeMs).toISOString()
  for (let page = 1; page <= maxPages; page += 1) {
    const { json } = await asReadOnly(
      request(`${url}?order_by=created_at&sort=desc&per_page=${perPage}&page=${page}`),
    )
    // A cut or foreign response does not say that it is missing.
    if (!Array.isArray(json)) throw new DeliveryError('retryable', 'gitlab returned no notes')
    const notes = json as readonly unknown[]
    if (notes.some((note) => textAt(note, 'body')?.startsWith(mark))) return true
    if (notes.length < perPage || (textAt(notes.at(-1), 'created_at') ?? since) < since)
      return false
  }
  return false
}

const moved = 'the project was moved: use its new path'

const hints: Readonly<Record<number, string>> = {
  301: moved,
  302: moved,
  307: moved,
  308: moved,
  400: 'GitLab rejects this note',
  403: 'the token may not comment there: it needs the scope api and the role of a reporter; or the discussion is locked',
  404: 'there is no such merge request or issue, or the token may not see it (scope api)',
}
