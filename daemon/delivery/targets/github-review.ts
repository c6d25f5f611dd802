import { textAt } from '../../util/payload-path.ts'
import { asReadOnly } from '../delivery-error.ts'
import { describeLeftOut, toGithubBody } from '../format/parts.ts'
import {
  describeComments,
  placeComments,
  type PlacedComment,
  withoutPrefix,
} from '../format/place-comments.ts'
import { type LineComment, parseAnswer } from '../format/review.ts'
import type { CommentMarks } from '../loop-guard.ts'
import type { Sender, Sent } from '../sender.ts'
import { findListed, type GithubApi, type GithubRequest, type Hints } from './github-api.ts'

/** GitHub lists 3,000 files of a pull request at most. */
const maxFilePages = 30

/**
 * A review of a pull request (docs.github.com/rest/pulls/reviews): the answer, with its comments on lines. It
 * never approves, and requests no changes. Comments that do not fit the diff go into the text.
 */
export const createGithubReview = (api: GithubApi, marks: CommentMarks): Sender => ({
  isIdempotent: true,
  send: async ({ address, text: answer, reply }, attempt) => {
    const [repository = '', number = ''] = address.split('#')
    const pull = `/repos/${repository}/pulls/${number}`
    const review = parseAnswer(answer)
    const { comments } = review
    const leftOut = describeLeftOut(reply.code?.leftOut)
    if (review.text.trim() === '' && comments.length === 0)
      return ['the answer has neither words nor comments: nothing was posted', review.note]
        .filter((note) => note !== undefined)
        .join('; ')
    const mark = (part: number, text: string) => {
      const body = toGithubBody(text)
      return { sign: marks.markFor(reply.eventId, part, body), body }
    }
    const grant = { repository, permissions: { pull_requests: 'write' } } as const
    return api({ attempt, hints, grant, bot: reply.bot }, async (request) => {
      const moved = comments.length > 0 && (await hasMoved(request, pull, reply.code?.head))
      const patches =
        comments.length > 0 && !moved
          ? await fetchPatches(request, pull, comments, reply.code?.hunks)
          : new Map()
      const { placed, others } = placeComments(comments, patches)
      let made: Sent['made']
      const post = async (shown: readonly PlacedComment[], inText: readonly LineComment[]) => {
        const { sign, body } = mark(1, withComments([leftOut, review.text], shown, inText))
        const isSame = (found: unknown) => textAt(found, 'body')?.startsWith(sign) ?? false
        const list = { path: `${pull}/reviews?`, what: 'reviews' }
        if (attempt.mayHaveArrived && (await findListed(request, list, isSame))) return 'arrived'
        const response = await request(`${pull}/reviews`, {
          body: {
            event: 'COMMENT',
            body: marks.toBody(sign, body),
            ...(reply.code && !moved && { commit_id: reply.code.head }),
            comments: shown.map(({ path, line, side, start, body: words }, index) => {
              const one = mark(index + 2, words)
              const first = start && { start_line: start.line, start_side: start.side }
              return { path, ...first, line, side, body: marks.toBody(one.sign, one.body) }
            }),
          },
          handles: shown.length > 0 ? [422] : [],
        })
        if (response.status === 422) return 'refused'
        made = api.toMade(describeReview(shown.length), response)
        return 'posted'
      }
      let outcome = await post(placed, others)
      // The diff may have changed since.
      const refused = outcome === 'refused'
      if (refused) outcome = await post([], comments)
      const inText = refused ? comments.length : others.length
      const notes = [
        outcome === 'arrived' ? 'an earlier attempt had arrived' : undefined,
        review.note,
        inText === 0 ? undefined : describeOthers(inText, comments.length, moved),
      ].filter((note) => note !== undefined)
      return { note: notes.length === 0 ? undefined : notes.join('; '), made }
    })
  },
})

/** `review, 3 comments` */
export const describeReview = (comments: number): string =>
  comments === 0 ? 'review' : `review, ${comments} ${comments === 1 ? 'comment' : 'comments'}`

export const describeOthers = (
  inText: number,
  all: number,
  moved: boolean,
  what: 'pull request' | 'merge request' = 'pull request',
): string =>
  `${inText} of ${all} comments ${moved ? `are on an older state of the ${what}` : 'do not fit the diff'}: they are in the text of the review`

/** The text of a review, with the comments that are on no line. */
export const withComments = (
  parts: readonly string[],
  shown: readonly LineComment[],
  inText: readonly LineComment[],
): string => {
  const words = [...parts, describeComments(inText)].filter((part) => part.trim() !== '')
  return words.length === 0 && shown.length > 0 ? 'Comments on lines:' : words.join('\n\n')
}

/** True when the pull request has another head than the one that the agent saw. */
const hasMoved = async (
  request: GithubRequest,
  pull: string,
  head: string | undefined,
): Promise<boolean> => {
  if (head === undefined) return false
  const { json } = await asReadOnly(request(pull))
  return textAt(json, 'head', 'sha') !== head
}

/** The diffs of the commented files, by path. GitHub gives none of a large file: the workspace has it. */
const fetchPatches = async (
  request: GithubRequest,
  pull: string,
  comments: readonly LineComment[],
  hunks: unknown,
): Promise<ReadonlyMap<string, string>> => {
  const missing = new Set(comments.map(({ path }) => path))
  // A path may have a prefix, which counts only where the file itself is not in the list.
  const wanted = new Set([...missing].flatMap((path) => [path, withoutPrefix(path)]))
  const patches = new Map<string, string>()
  await findListed(
    request,
    { path: `${pull}/files?`, what: 'files', maxPages: maxFilePages },
    (file) => {
      const path = textAt(file, 'filename')
      if (path === undefined || !wanted.has(path)) return false
      patches.set(path, textAt(file, 'patch') ?? textAt(hunks, path) ?? '')
      missing.delete(path)
      return missing.size === 0
    },
  )
  return patches
}

const hints: Hints = {
  403: 'the token may not review there: it needs the scope repo, or write access to pull requests; or the conversation is locked',
  404: 'there is no such pull request, or the token may not see it (scope repo)',
  422: 'GitHub rejects this review: a pending review of yours there has to be submitted or discarded first',
}
