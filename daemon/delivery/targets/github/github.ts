import { textAt, valueAt } from '../../../util/payload-path.ts'
import { DeliveryError } from '../../delivery-error.ts'
import type { CommentMarks } from '../../loop-guard.ts'
import type { Sender } from '../../sender.ts'
import { findListed, type GithubApi, type Hints } from './github-api.ts'

/** Maximum age of a comment of an earlier attempt. */
const maxAgeMs = 24 * 60 * 60 * 1000

/**
 * Comments on issues and pull requests (docs.github.com/rest/issues/comments). Each begins with a hidden
 * mark, by which a repeat finds the comment of an earlier attempt, and an update the comment that it edits.
 */
export const createGithub = (api: GithubApi, marks: CommentMarks): Sender => ({
  isIdempotent: true,
  send: async ({ address: issue, text: answer, part, reply }, attempt) => {
    const [repository = '', number = ''] = issue.split('#')
    const comments = `/repos/${repository}/issues/${number}/comments`
    const { eventId, updateKey } = reply
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
      return { made: api.toMade('comment', await request(comments, { body: { body } })) }
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

const secondLine = (body: string): string | undefined => body.split('\n', 2)[1]?.trim()

const hints: Hints = {
  403: 'the token may not comment there: it needs the scope repo, or write access to issues; or the conversation is locked',
  404: 'there is no such issue, or the token may not see it (scope repo)',
  410: 'the issue was deleted, or the repository has no issues',
  422: 'GitHub rejects this comment',
}
