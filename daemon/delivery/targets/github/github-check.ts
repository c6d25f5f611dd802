import { valueAt } from '../../../util/payload-path.ts'
import { parseAnswer } from '../../format/review.ts'
import { toLinkHosts } from '../../format/links.ts'
import { describeLeftOut, toGithubBody, toHarmlessTitle } from '../../format/parts.ts'
import type { CommentMarks, OwnMessages } from '../../loop-guard.ts'
import type { AgentReply, LiveCheck, Sender } from '../../sender.ts'
import { findListed, type GithubApi, type Hints } from './github-api.ts'

/** The button of a check run that is completed; GitHub takes 20 and 40 characters. */
export const runAgain = {
  label: 'Run again',
  description: 'Run the agent on this event again',
  identifier: 'run-again',
}

/** True where a target sets the check that follows its event anyway: there is one then, not two. */
export const isSameCheck = (
  live: LiveCheck | undefined,
  address: string,
  checkName: string | undefined,
): live is LiveCheck =>
  live !== undefined &&
  address === `${live.repository}@${live.sha}` &&
  (checkName ?? live.name) === live.name

/** "description is too long (maximum is 140 characters)" */
const maxDescription = 140

/**
 * A check run of a commit (docs.github.com/rest/checks/runs), which only an app may create; otherwise a commit
 * status (docs.github.com/rest/commits/statuses).
 */
export const createGithubCheck = (
  api: GithubApi,
  marks: CommentMarks,
  messages: OwnMessages,
): Sender => ({
  isIdempotent: true,
  preview: ({ text, reply }) => {
    const { name, conclusion, summary } = toOutput(text, reply, api.origin)
    return `${name}: ${conclusion}\n\n${summary}`
  },
  send: async ({ address, text: answer, reply }, attempt) => {
    const [repository = '', sha = ''] = address.split('@')
    const { name, conclusion, title, summary } = toOutput(answer, reply, api.origin)
    const mark = marks.markFor(reply.eventId, 1, summary)
    const commit = `/repos/${repository}/commits/${sha}`
    const grant = { repository, permissions: { checks: 'write' } } as const
    return api({ attempt, hints, grant, bot: reply.bot }, async (request) => {
      const list = {
        path: `${commit}/check-runs?check_name=${encodeURIComponent(name)}&filter=all`,
        what: 'check runs',
        field: 'check_runs',
      }
      const isSame = (run: unknown) => valueAt(run, ['external_id']) === mark
      if (attempt.mayHaveArrived && (await findListed(request, list, isSame)))
        return 'an earlier attempt had arrived'
      const { liveCheck } = reply
      const isSameRun = isSameCheck(liveCheck, address, reply.checkName)
      const path = `/repos/${repository}/check-runs${isSameRun ? `/${liveCheck.number}` : ''}`
      const response = await request(path, {
        ...(isSameRun && { method: 'PATCH' }),
        body: {
          ...(isSameRun ? { actions: [runAgain] } : { name, head_sha: sha }),
          external_id: mark,
          status: 'completed',
          conclusion,
          output: { title, summary },
        },
        // GitHub answers 404 to a login that may only set statuses.
        handles: [403, 404],
      })
      const { status } = response
      if (status !== 403 && status !== 404) return { made: api.toMade('check', response) }
      const state = conclusion === 'failure' ? 'failure' : 'success'
      messages.rememberStatus({ sha, context: name, description: title, state })
      await request(`/repos/${repository}/statuses/${sha}`, {
        body: { state, context: name, description: title },
      })
      return 'as a commit status: only an app may create check runs'
    })
  },
})

/** The words of a check for an answer. */
const toOutput = (answer: string, reply: AgentReply, server: string) => {
  // Without a verdict it is neutral.
  const { text, conclusion = 'neutral' } = parseAnswer(answer)
  const parts = [text, describeLeftOut(reply.code)]
  const words = parts.filter((part) => part !== '').join('\n\n')
  const summary = toGithubBody(words, toLinkHosts(server, reply))
  const name = reply.checkName ?? `doorward/${reply.rule ?? reply.webhook.slice(1)}`
  return { name, conclusion, title: toHarmlessTitle(words, maxDescription), summary }
}

const hints: Hints = {
  403: 'the token may not set a status there: it needs the scope repo or repo:status, or write access to commit statuses',
  404: 'there is no such repository, or the token may not see it (scope repo)',
  422: 'the repository has no such commit',
}
