import { textAt, valueAt } from '../../../util/payload-path.ts'
import { asReadOnly, DeliveryError } from '../../delivery-error.ts'
import { type LinkHosts, toLinkHosts } from '../../format/links.ts'
import { withoutSuggestions } from '../../format/markdown-code.ts'
import { describeLeftOut, toGithubBody, toGitlabBody } from '../../format/parts.ts'
import { type PlacedComment, placeComments } from '../../format/place-comments.ts'
import { type LineComment, parseAnswer } from '../../format/review.ts'
import type { CommentMarks } from '../../loop-guard.ts'
import type { Sender, SeenCode } from '../../sender.ts'
import { needsOf, type TokenSource, withToken } from '../../token.ts'
import { describeRepeated, type MarkedText, ReviewMarks } from '../../review-marks.ts'
import {
  describeOthers,
  describeReview,
  describeThere,
  previewReview,
  withComments,
} from '../github/github-review.ts'
import { findEarlier, retireEarlier } from './gitlab-earlier.ts'
import {
  createGitlabRequest,
  findNote,
  gitlabApiUrl,
  type GitlabRequest,
  toNote,
} from './gitlab.ts'

/** GitLab limits the diff of one file, so that a page stays small. */
const filesPerPage = 20
const maxFilePages = 150

/**
 * A review of a merge request: a thread for each comment on a line (docs.gitlab.com/api/discussions), and a note
 * with the rest. Each begins with a hidden mark, by which a repeat finds those of an earlier attempt. It replaces the
 * earlier review of the same rule, and repeats none of its comments.
 */
export const createGitlabReview = (
  apiUrl = gitlabApiUrl,
  token: TokenSource,
  marks: CommentMarks,
): Sender => ({
  isIdempotent: true,
  needs: needsOf(token, ['api']),
  preview: (message) => previewReview(message, toGitlabBody, new URL(apiUrl).origin),
  send: async ({ address, text: answer, reply }, attempt) => {
    const [project = '', number = ''] = address.split('!')
    const merge = `${apiUrl}/projects/${encodeURIComponent(project)}/merge_requests/${number}`
    const review = parseAnswer(answer)
    const { comments, note } = review
    const hosts = toLinkHosts(new URL(apiUrl).origin, reply)
    const reviewMarks = new ReviewMarks(marks, reply, address)
    return withToken(token, async (accessToken) => {
      const request = createGitlabRequest(accessToken, attempt)
      const diff =
        comments.length > 0 ? await readDiff(request, merge, comments, reply.code) : undefined
      const { placed, others } = placeComments(comments, diff?.patches ?? new Map())
      const earlier =
        review.text.trim() === '' && comments.length === 0
          ? undefined
          : await findEarlier(request, { merge, apiUrl, marks: reviewMarks })
      const hidden = reviewMarks.linesOf(placed)
      const there = new Set(earlier?.comments.map(({ line }) => line))
      const fresh = placed.filter((comment) => !there.has(hidden.get(comment) ?? ''))
      const repeated = placed.length - fresh.length
      const arrived = new Set<string>()
      if (placed.length > 0 || attempt.mayHaveArrived)
        await findNote(`${merge}/notes`, request, (body) => {
          arrived.add(body.split('\n', 1)[0] ?? '')
          return false
        })
      const post = createPost(request, merge, arrived)
      const posted: unknown[] = []
      const inText = [...others]
      for (const [index, comment] of fresh.entries()) {
        const position = { ...diff?.refs, ...toPosition(comment, diff?.oldPaths) }
        const text = reviewMarks.comment(
          index + 2,
          hidden.get(comment) ?? '',
          toBody(comment, hosts),
        )
        const id = await post('discussions', text, position)
        if (id === undefined) inText.push(comment)
        else posted.push(id)
      }
      // The words of an earlier review are replaced by a link to those of this one.
      const shown = earlier && earlier.summaries.length > 0 ? fresh : []
      const words = withComments(
        [describeLeftOut(reply.code), review.text, describeRepeated(repeated)],
        shown,
        inText,
      )
      const summary =
        words === ''
          ? undefined
          : await post('notes', reviewMarks.summary(toGitlabBody(words, hosts)))
      const item = `${project}/-/merge_requests/${number}`
      const made = toNote(describeReview(posted.length), posted[0] ?? summary, item, apiUrl)
      const notes = [
        words === '' && placed.length === 0
          ? 'the answer has neither words nor comments: nothing was posted'
          : undefined,
        note,
        inText.length === 0
          ? undefined
          : describeOthers(
              inText.length,
              comments.length,
              diff?.hasMoved ?? false,
              'merge request',
            ),
        describeThere(repeated),
        ...(earlier
          ? await retireEarlier(request, {
              merge,
              marks: reviewMarks,
              earlier,
              lines: new Set(hidden.values()),
              url: (toNote('', summary, item, apiUrl) ?? made)?.url,
            })
          : []),
      ].filter((one) => one !== undefined)
      return { note: notes.length === 0 ? undefined : notes.join('; '), made }
    })
  },
})

/** Returns the number of a note, 'there' for one of an earlier attempt, or undefined if GitLab refuses its line. */
const createPost =
  (request: GitlabRequest, merge: string, arrived: ReadonlySet<string>) =>
  async (list: string, { mark, body }: MarkedText, position?: object) => {
    if (arrived.has(mark)) return 'there'
    const fields = { body, ...(position && { position }) }
    const { status, json } = await request(`${merge}/${list}`, fields, position ? [400] : [])
    if (status === 400) return undefined
    return valueAt(json, position ? ['notes', '0', 'id'] : ['id']) ?? 'there'
  }

type Diff = {
  /** The head of a position needs these. */
  readonly refs: object
  readonly patches: ReadonlyMap<string, string>
  /** The path before a rename, by the new one. */
  readonly oldPaths: ReadonlyMap<string, string>
  readonly hasMoved: boolean
}

/** The diffs of a merge request, unless it has another head than the one that the agent saw. */
const readDiff = async (
  request: GitlabRequest,
  merge: string,
  comments: readonly LineComment[],
  code: SeenCode | undefined,
): Promise<Diff> => {
  const { json } = await asReadOnly(request(merge))
  const [base_sha, start_sha, head_sha] = ['base_sha', 'start_sha', 'head_sha'].map((name) =>
    textAt(json, 'diff_refs', name),
  )
  const refs = { base_sha, start_sha, head_sha }
  const patches = new Map<string, string>()
  const oldPaths = new Map<string, string>()
  const hasMoved = code !== undefined && code.head !== head_sha
  const diff = { refs, patches, oldPaths, hasMoved }
  if (hasMoved) return diff
  const missing = new Set(comments.map(({ path }) => path))
  for (let page = 1; page <= maxFilePages && missing.size > 0; page += 1) {
    const found = await asReadOnly(request(`${merge}/diffs?per_page=${filesPerPage}&page=${page}`))
    if (!Array.isArray(found.json)) throw new DeliveryError('retryable', 'gitlab returned no diffs')
    const files = found.json as readonly unknown[]
    for (const file of files) {
      const path = textAt(file, 'new_path') ?? ''
      // The diff of a large file is empty: the workspace has it.
      patches.set(path, textAt(file, 'diff') || (textAt(code?.hunks, path) ?? ''))
      oldPaths.set(path, textAt(file, 'old_path') ?? path)
      missing.delete(path)
    }
    if (files.length < filesPerPage) break
  }
  return diff
}

/** GitLab wants both paths always, and both numbers of a line that is unchanged. */
const toPosition = (
  { path, at: { left, right } }: PlacedComment,
  oldPaths: Diff['oldPaths'] | undefined,
) => ({
  position_type: 'text',
  new_path: path,
  old_path: oldPaths?.get(path) ?? path,
  ...(left !== undefined && { old_line: left }),
  ...(right !== undefined && { new_line: right }),
})

/** GitLab takes no more lines into a suggestion. */
const maxLinesAbove = 100

/** A suggestion of GitLab says how many lines above its own it replaces. */
const toBody = ({ body, side, line, start }: PlacedComment, hosts: LinkHosts): string => {
  const words = start ? `Lines ${start.line} to ${line}:\n\n${body}` : body
  const text = toGitlabBody(words, hosts)
  const above = start ? line - start.line : 0
  const isChanged = suggestionsIn(text) !== suggestionsIn(toGithubBody(words, hosts))
  const isRight = side === 'RIGHT' && (start?.side ?? side) === 'RIGHT'
  if (isChanged || !isRight || above > maxLinesAbove) return withoutSuggestions(text)
  return text.replaceAll(/^((?:`{3,}|~{3,})[ \t]*suggestion)[ \t]*$/gim, `$1:-${above}+0`)
}

/** The code that a reader could apply. */
const suggestionsIn = (text: string): string =>
  [...text.matchAll(/^(`{3,}|~{3,})[ \t]*suggestion[ \t]*\n([^]*?)^\1/gim)]
    .map(([, , code]) => code)
    .join('\n')
