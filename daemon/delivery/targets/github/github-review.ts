import { textAt } from '../../../util/payload-path.ts'
import { asReadOnly } from '../../delivery-error.ts'
import { type LinkHosts, toLinkHosts } from '../../format/links.ts'
import { describeLeftOut, toCode, toGithubBody } from '../../format/parts.ts'
import {
  describeComments,
  placeComments,
  type PlacedComment,
  withoutPrefix,
} from '../../format/place-comments.ts'
import { type LineComment, parseAnswer } from '../../format/review.ts'
import type { CommentMarks } from '../../loop-guard.ts'
import { describeRepeated, ReviewMarks } from '../../review-marks.ts'
import type { Message, Sender } from '../../sender.ts'
import { findListed, type GithubApi, type GithubRequest, type Hints } from './github-api.ts'
import { findEarlier, listAll, retireEarlier } from './github-earlier.ts'

/** GitHub lists 3,000 files of a pull request at most. */
const maxFilePages = 30

/**
 * A review of a pull request (docs.github.com/rest/pulls/reviews): the answer, with its comments on lines. It
 * never approves, and requests no changes. Comments that do not fit the diff go into the text. It replaces the
 * earlier review of the same rule, and repeats none of its comments.
 */
export const createGithubReview = (api: GithubApi, marks: CommentMarks): Sender => ({
  isIdempotent: true,
  preview: (message) => previewReview(message, toGithubBody, api.origin),
  send: async ({ address, text: answer, reply }, attempt) => {
    const [repository = '', number = ''] = address.split('#')
    const pull = `/repos/${repository}/pulls/${number}`
    const review = parseAnswer(answer)
    const { comments } = review
    const leftOut = describeLeftOut(reply.code)
    if (review.text.trim() === '' && comments.length === 0)
      return ['the answer has neither words nor comments: nothing was posted', review.note]
        .filter((note) => note !== undefined)
        .join('; ')
    const hosts = toLinkHosts(api.origin, reply)
    const reviewMarks = new ReviewMarks(marks, reply, address)
    const grant = { repository, permissions: { pull_requests: 'write' } } as const
    return api({ attempt, hints, grant, bot: reply.bot }, async (request) => {
      const moved = comments.length > 0 && (await hasMoved(request, pull, reply.code?.head))
      const patches =
        comments.length > 0 && !moved
          ? await fetchPatches(request, pull, comments, reply.code?.hunks)
          : new Map()
      const { placed, others } = placeComments(comments, patches)
      const listed = await listAll(request, `${pull}/reviews?`, 'reviews')
      const earlier = await findEarlier(request, pull, reviewMarks, listed)
      const lines = reviewMarks.linesOf(placed)
      const fresh = placed.filter((comment) => !earlier.comments.has(lines.get(comment) ?? ''))
      const repeated = describeRepeated(placed.length - fresh.length)
      const post = async (shown: readonly PlacedComment[], inText: readonly LineComment[]) => {
        const words = withComments([leftOut, review.text, repeated], shown, inText)
        const { mark, body } = reviewMarks.summary(toGithubBody(words, hosts))
        const isSame = (found: unknown) => textAt(found, 'body')?.startsWith(mark) ?? false
        const arrived = attempt.mayHaveArrived ? listed.find(isSame) : undefined
        if (arrived !== undefined) return { outcome: 'arrived', posted: arrived }
        const response = await request(`${pull}/reviews`, {
          body: {
            event: 'COMMENT',
            body,
            ...(reply.code && !moved && { commit_id: reply.code.head }),
            comments: shown.map((comment, index) => {
              const { path, line, side, start, body: text } = comment
              const first = start && { start_line: start.line, start_side: start.side }
              const hidden = lines.get(comment) ?? ''
              const one = reviewMarks.comment(index + 2, hidden, toGithubBody(text, hosts))
              return { path, ...first, line, side, body: one.body }
            }),
          },
          handles: shown.length > 0 ? [422] : [],
        })
        if (response.status === 422) return { outcome: 'refused', posted: {} }
        const made = api.toMade(describeReview(shown.length), response)
        return { outcome: 'posted', posted: response.json, made }
      }
      let result = await post(fresh, others)
      // The diff may have changed since.
      const refused = result.outcome === 'refused'
      const unplaced = refused ? [...fresh.map(toLineComment), ...others] : others
      if (refused) result = await post([], unplaced)
      const inText = unplaced.length
      const notes = [
        result.outcome === 'arrived' ? 'an earlier attempt had arrived' : undefined,
        review.note,
        inText === 0 ? undefined : describeOthers(inText, comments.length, moved),
        describeThere(placed.length - fresh.length),
        ...(await retireEarlier(
          request,
          { pull, marks: reviewMarks, earlier, api },
          result.posted,
        )),
      ].filter((note) => note !== undefined)
      return { note: notes.length === 0 ? undefined : notes.join('; '), made: result.made }
    })
  },
})

const toLineComment = ({ start, at: _at, ...comment }: PlacedComment): LineComment => ({
  ...comment,
  ...(start && { startLine: start.line }),
})

/**
 * The words and the comments of a review. Which comments are on lines, and which were there before, is known only
 * when it is posted.
 */
export const previewReview = (
  { text: answer, reply }: Pick<Message, 'text' | 'reply'>,
  toBody: (text: string, hosts: LinkHosts) => string,
  server: string,
): string => {
  const hosts = toLinkHosts(server, reply)
  const { text, comments } = parseAnswer(answer)
  const words = withComments([describeLeftOut(reply.code), text], comments, [])
  return [
    words === '' ? '' : toBody(words, hosts),
    ...comments.map((comment) => {
      const { path, side, line, startLine, body } = comment
      const lines = [startLine, line].filter((one) => one !== undefined).join('-')
      return `${toCode(path)} ${lines}${side === 'LEFT' ? ' (old)' : ''}\n\n${toBody(body, hosts)}`
    }),
  ]
    .filter((part) => part !== '')
    .join('\n\n---\n\n')
}

/** `review, 3 comments` */
export const describeReview = (comments: number): string =>
  comments === 0 ? 'review' : `review, ${comments} ${comments === 1 ? 'comment' : 'comments'}`

/** For the event. */
export const describeThere = (repeated: number): string | undefined => {
  if (repeated === 0) return undefined
  return repeated === 1 ? 'a comment was there already' : `${repeated} comments were there already`
}

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
