import { DoorwardError } from '../../../../shared/errors.ts'
import { isAddress } from '../../../../shared/targets/schema.ts'
import { textAt, textOfValue, valueAt } from '../../../util/payload-path.ts'
import { DeliveryError, TokenRefused, asReadOnly } from '../../delivery-error.ts'
import { toStatusError, requestTarget, type TargetResponse } from '../../request.ts'
import type { CommentMarks } from '../../loop-guard.ts'
import { type Asking, type Sender, type Sent, toMade } from '../../sender.ts'
import { needsOf, type TokenSource, withToken } from '../../token.ts'

const gitlab = 'gitlab'
export const gitlabApiUrl = 'https://gitlab.com/api/v4'
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
  apiUrl = gitlabApiUrl,
  token: TokenSource,
  marks: CommentMarks,
): Sender => ({
  isIdempotent: true,
  server: new URL(apiUrl).origin,
  send: async ({ address, text, part, reply }, attempt) => {
    const [, project = '', sign = '', number = '', thread] =
      /^(.*)([!#])(\d+)(?:\/([0-9a-f]+))?$/.exec(address) ?? []
    const kind = sign === '!' ? 'merge_requests' : 'issues'
    const item = `${apiUrl}/projects/${encodeURIComponent(project)}/${kind}/${number}`
    const url = `${item}/notes`
    const mark = marks.markFor(reply.eventId, part, text)
    return withToken(token, async (accessToken) => {
      const request = createGitlabRequest(accessToken, attempt)
      const isSame = (body: string) => body.startsWith(mark)
      if (attempt.mayHaveArrived && (await findNote(url, request, isSame)))
        return 'an earlier attempt had arrived'
      const body = { body: marks.toBody(mark, text) }
      // docs.gitlab.com/api/discussions: a single comment becomes a thread by an answer.
      const answer =
        thread === undefined
          ? undefined
          : await request(`${item}/discussions/${thread}/notes`, body, [404])
      const isGone = answer?.status === 404
      const response = answer && !isGone ? answer : await request(url, body)
      return {
        ...(isGone && { note: 'the comment was deleted: answered as a new one' }),
        made: toNote('comment', response.json['id'], `${project}/-/${kind}/${number}`, apiUrl),
      }
    })
  },
  needs: needsOf(token, ['api']),
  // docs.gitlab.com/api/users/#get-the-current-user
  check: async (_, asking) =>
    withToken(token, async (accessToken) =>
      createGitlabRequest(accessToken, asking)(`${apiUrl}/user`),
    ),
})

/** Where an event of GitLab came from: the merge request or issue, or the discussion of a comment. Throws `target-invalid`. */
export const findGitlabReply = (payload: unknown): string => {
  const at = (...path: string[]) => textOfValue(valueAt(payload, path))
  const kind = at('object_kind')
  const type = kind === 'note' ? at('object_attributes', 'noteable_type') : kind
  const isItem = kind !== 'note' && kind !== 'pipeline'
  const number = isItem
    ? at('object_attributes', 'iid')
    : at('merge_request', 'iid') || at('issue', 'iid')
  const isIssue = ['Issue', 'issue', 'work_item', 'incident'].includes(type)
  const address = `${at('project', 'path_with_namespace')}${isIssue ? '#' : '!'}${number}`
  const isKnown = isIssue || ['MergeRequest', 'merge_request', 'pipeline'].includes(type)
  if (!isKnown || !isAddress('gitlab', address))
    throw new DoorwardError(
      'target-invalid',
      'this event of GitLab is about no issue or merge request',
      { hint: 'name one: gitlab:<group>/<project>!<number>' },
    )
  const thread = at('object_attributes', 'discussion_id')
  return /^[0-9a-f]{8,64}$/.test(thread) ? `${address}/${thread}` : address
}

/** A note that was made on a merge request or issue: GitLab gives its number, and no address. */
export const toNote = (what: string, id: unknown, item: string, apiUrl: string): Sent['made'] => {
  const server = apiUrl.replace(/\/api\/v4$/, '')
  const page = Number.isSafeInteger(id) ? `${server}/${item}#note_${String(id)}` : undefined
  return toMade(what, page, server)
}

/** One request. Statuses of `handles` do not throw. Throws `DeliveryError`, or `TokenRefused`. */
export type GitlabRequest = (
  to: string,
  body?: object,
  handles?: readonly number[],
  method?: 'PUT',
) => Promise<TargetResponse>

export const createGitlabRequest =
  (accessToken: string, attempt: Asking): GitlabRequest =>
  async (to, body, handles = [], method) => {
    const response = await requestTarget(new URL(to), {
      target: gitlab,
      ...(method && { method }),
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
    if (failure && !handles.includes(status)) throw failure
    return response
  }

/** True where one of the notes of the last day, the newest first, passes the test. */
export const findNote = async (
  url: string,
  request: GitlabRequest,
  test: (body: string) => boolean,
): Promise<boolean> => {
  const since = new Date(Date.now() - maxAgeMs).toISOString()
  for (let page = 1; page <= maxPages; page += 1) {
    const { json } = await asReadOnly(
      request(`${url}?order_by=created_at&sort=desc&per_page=${perPage}&page=${page}`),
    )
    // A cut or foreign response does not say that it is missing.
    if (!Array.isArray(json)) throw new DeliveryError('retryable', 'gitlab returned no notes')
    const notes = json as readonly unknown[]
    if (notes.some((note) => test(textAt(note, 'body') ?? ''))) return true
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
