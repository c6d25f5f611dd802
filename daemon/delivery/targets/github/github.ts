import { DoorwardError } from '../../../../shared/errors.ts'
import { isAddress } from '../../../../shared/targets/schema.ts'
import { textAt, valueAt } from '../../../util/payload-path.ts'
import { DeliveryError } from '../../delivery-error.ts'
import type { CommentMarks } from '../../loop-guard.ts'
import type { TargetResponse } from '../../request.ts'
import type { Attempt, Sender } from '../../sender.ts'
import { findListed, type GithubApi, type GithubRequest, type Hints } from './github-api.ts'

/** Maximum age of a comment of an earlier attempt. */
const maxAgeMs = 24 * 60 * 60 * 1000

/**
 * Comments on issues and pull requests (docs.github.com/rest/issues/comments). Each begins with a hidden
 * mark, by which a repeat finds the comment of an earlier attempt, and an update the comment that it edits.
 */
export const createGithub = (api: GithubApi, marks: CommentMarks): Sender => ({
  isIdempotent: true,
  send: async ({ address, text: answer, part, reply }, attempt) => {
    const { issue, repository, number, thread } = parseAddress(address)
    const comments = `/repos/${repository}/issues/${number}/comments`
    const { eventId } = reply
    // In a thread of a review nothing is edited.
    const updateKey = thread === undefined ? reply.updateKey : undefined
    const line =
      updateKey === undefined ? undefined : marks.keyLine(`${updateKey}\n${issue}\n${part}`)
    const text = line === undefined ? answer : `${line}\n${answer}`
    const mark = marks.markFor(eventId, part, text)
    const body = marks.toBody(mark, text)
    // A pull request is an issue too: either permission lets a bot comment.
    const grant = { repository, permissions: { issues: 'write', pull_requests: 'write' } } as const
    return api({ attempt, hints, grant, bot: reply.bot }, async (request) => {
      const find = async (query: string, test: (body: string) => boolean) =>
        findListed(request, { path: `${comments}?${query}`, what: 'comments' }, (comment) =>
          test(textAt(comment, 'body') ?? ''),
        )
      let note: string | undefined
      if (thread !== undefined) {
        const answered = await answerThread(request, { repository, number, thread }, mark, body, {
          mayHaveArrived: attempt.mayHaveArrived,
        })
        if (answered === 'arrived') return arrived
        if (answered !== 'gone') return { made: api.toMade('comment', answered) }
        note = threadIsGone
      }
      if (line !== undefined) {
        const earlier = await find('', (found) => marks.isOwn(found) && secondLine(found) === line)
        if (textAt(earlier, 'body')?.startsWith(mark)) return arrived
        const id = valueAt(earlier, ['id'])
        if (typeof id === 'number') {
          const path = `/repos/${repository}/issues/comments/${id}`
          return {
            made: api.toMade('comment', await request(path, { method: 'PATCH', body: { body } })),
          }
        }
      } else if (attempt.mayHaveArrived) {
        const since = new Date(Date.now() - maxAgeMs).toISOString()
        if (await find(`since=${since}`, (found) => found.startsWith(mark))) return arrived
      }
      return { note, made: api.toMade('comment', await request(comments, { body: { body } })) }
    })
  },
  // docs.github.com/rest/users/users#get-the-authenticated-user
  check: async (_, attempt) => {
    try {
      return await api({ attempt }, async (request) => request('/user'))
    } catch (error) {
      // A bot has no token without a repository, and is checked by itself.
      if (error instanceof DeliveryError && error.code === 'repository-needed') return undefined
      throw error
    }
  },
})

const arrived = 'an earlier attempt had arrived'
const threadIsGone = 'the comment of the review was deleted: answered below the pull request'

/** `acme/shop#12`, and `acme/shop#12/r345` for the thread of a comment of a review, which only `reply` makes. */
const parseAddress = (address: string) => {
  const [issue = '', thread] = address.split('/r')
  const [repository = '', number = ''] = issue.split('#')
  return { issue, repository, number, thread }
}

type Thread = { readonly repository: string; readonly number: string; readonly thread: string }

/** docs.github.com/rest/pulls/comments#create-a-reply-for-a-review-comment */
const answerThread = async (
  request: GithubRequest,
  { repository, number, thread }: Thread,
  mark: string,
  body: string,
  { mayHaveArrived }: Pick<Attempt, 'mayHaveArrived'>,
): Promise<TargetResponse | 'arrived' | 'gone'> => {
  const comments = `/repos/${repository}/pulls/${number}/comments`
  if (mayHaveArrived) {
    const since = new Date(Date.now() - maxAgeMs).toISOString()
    const list = { path: `${comments}?since=${since}`, what: 'comments' }
    const isSame = (comment: unknown) => textAt(comment, 'body')?.startsWith(mark) === true
    if (await findListed(request, list, isSame)) return 'arrived'
  }
  const path = `${comments}/${thread}/replies`
  const response = await request(path, { body: { body }, handles: [404] })
  return response.status === 404 ? 'gone' : response
}

/**
 * Where an event of GitHub came from: the pull request or issue, or the thread of a comment of a review. Throws
 * `target-invalid`.
 */
export const findGithubReply = (payload: unknown): string => {
  const numberAt = (...path: string[]): number | undefined => {
    const value = valueAt(payload, path)
    return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined
  }
  const pull = numberAt('pull_request', 'number')
  const ofRun = ['workflow_run', 'workflow_job', 'check_run', 'check_suite']
    .map((kind) => numberAt(kind, 'pull_requests', '0', 'number'))
    .find((number) => number !== undefined)
  const number = pull ?? numberAt('issue', 'number') ?? ofRun
  const address = `${textAt(payload, 'repository', 'full_name') ?? ''}#${number ?? ''}`
  if (!isAddress('github', address))
    throw new DoorwardError(
      'target-invalid',
      'this event of GitHub is about no issue or pull request',
      { hint: 'name one: github:<owner>/<repo>#<number>' },
    )
  // Only the first comment of a thread can be answered.
  const thread = numberAt('comment', 'in_reply_to_id') ?? numberAt('comment', 'id')
  return pull === undefined || thread === undefined ? address : `${address}/r${thread}`
}

const secondLine = (body: string): string | undefined => body.split('\n', 2)[1]?.trim()

const hints: Hints = {
  403: 'the token may not comment there: it needs the scope repo, or write access to issues; or the conversation is locked',
  404: 'there is no such issue, or the token may not see it (scope repo)',
  410: 'the issue was deleted, or the repository has no issues',
  422: 'GitHub rejects this comment',
}
