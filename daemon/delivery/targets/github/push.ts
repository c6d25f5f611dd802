import { valueAt, textAt } from '../../../util/payload-path.ts'
import { askPerson } from '../../changes/attempts.ts'
import { describeChange } from '../../changes/describe-change.ts'
import { checkChange } from '../../changes/check-change.ts'
import { pushCommit } from '../../changes/push-commit.ts'
import { asReadOnly, DeliveryError } from '../../delivery-error.ts'
import type { AgentReply, Sender } from '../../sender.ts'
import type { Grant } from '../../token.ts'
import type { GithubApi, Hints } from './github-api.ts'
import { readLogin, withAuthor } from './pull-request-options.ts'
import { type ChangeParts, requireChange, toRemote } from './pull-request.ts'

/**
 * Pushes what the agent changed to the branch of a pull request, as one commit on the head that the agent saw: never
 * by force, never to a fork, and only to branches of doorward unless the rule allows others.
 */
export const createPush = (
  api: GithubApi,
  gitOrigin: string,
  { git, marks, messages, attempts }: ChangeParts,
): Sender => ({
  isIdempotent: true,
  preview: async ({ reply }) => {
    const change = requireChange(reply)
    return typeof change === 'string' ? `${change}: nothing is pushed` : describeChange(git, change)
  },
  send: async ({ address, reply }, attempt) => {
    const [name = '', number = ''] = address.split('#')
    const change = requireChange(reply)
    if (typeof change === 'string') return `${change}: nothing was pushed`
    const url = `${gitOrigin}/${name}.git`
    const { gitDir, ref } = change
    const checked = await checkChange(git, { gitDir, ref, url }, reply, attempt)
    const { maxAttempts: limit, commit: settings = {} } = reply.publish ?? {}
    const step = { attempt, hints, bot: reply.bot }
    if (limit !== undefined && (await attempts.count(reply)) >= limit) {
      const grant = { repository: name, permissions: { pull_requests: 'write' } } as const
      return api({ ...step, grant }, async (request) =>
        askPerson({ request, api, marks, reply, limit, repository: name, number: Number(number) }),
      )
    }
    const permissions: Grant['permissions'] = {
      contents: 'write',
      pull_requests: 'read',
      ...(checked.hasWorkflows && { workflows: 'write' }),
    }
    return api({ ...step, grant: { repository: name, permissions } }, async (request, token) => {
      const at = { cwd: gitDir, gitDir, signal: attempt.signal }
      const commit = await withAuthor(
        git,
        at,
        checked.commit,
        { ...settings, bot: reply.bot },
        async () => readLogin(request, gitOrigin, reply.bot),
      )
      const { json: pull } = await asReadOnly(request(`/repos/${name}/pulls/${number}`))
      const page = { html_url: `${textAt(pull, 'html_url')}/commits/${commit}` }
      const made = api.toMade(`commit on #${number}`, { json: page })
      if (textAt(pull, 'head', 'sha') === commit)
        return { note: 'an earlier attempt had arrived', made }
      const branch = requireBranch(pull, name, reply)
      messages.rememberCommit(commit)
      const remote = toRemote(url, gitOrigin, token)
      await pushCommit(git, { gitDir, commit, branch }, remote, attempt).catch((error: unknown) => {
        throw error instanceof DeliveryError && error.code === 'branch-moved' ? moved() : error
      })
      const uncounted = limit === undefined ? '' : await attempts.note(reply)
      await git(['update-ref', '-d', ref, checked.commit], at).catch(() => undefined)
      return { note: `commit ${commit.slice(0, 7)} on #${number}${uncounted}`, made }
    })
  },
})

/** No other character may reach the refspec of a push, whatever the API says. */
const branchForm = /^(?!.*\.\.)[^\s~^:?*[\\\p{Cc}]{1,250}$/u

/** The branch of a pull request to which this commit may be pushed. Throws `DeliveryError`. */
const requireBranch = (pull: unknown, name: string, { code, publish }: AgentReply): string => {
  const refuse = (
    code: 'delivery-failed' | 'push-fork' | 'push-not-allowed',
    message: string,
    hint: string,
  ) => new DeliveryError('permanent', message, { code, hint })
  if (valueAt(pull, ['state']) !== 'open')
    throw refuse('delivery-failed', 'the pull request is closed', 'reopen it, or open another')
  if (textAt(pull, 'head', 'repo', 'full_name')?.toLowerCase() !== name.toLowerCase())
    throw refuse(
      'push-fork',
      'the branch of this pull request is in a fork',
      'use github-review: to suggest the change there',
    )
  const branch = textAt(pull, 'head', 'ref') ?? ''
  if (!branchForm.test(branch) || branch === textAt(pull, 'base', 'repo', 'default_branch'))
    throw refuse(
      'push-not-allowed',
      'nothing is pushed to the default branch, or to a branch of this name',
      'open the pull request from another branch',
    )
  if (!branch.startsWith('doorward/') && !publish?.allowsPush)
    throw refuse(
      'push-not-allowed',
      `the branch ${branch} is not one of doorward`,
      'if the rule may push to branches of people: allow_push: true',
    )
  if (textAt(pull, 'head', 'sha') !== code?.head) throw moved()
  return branch
}

const moved = (): DeliveryError =>
  new DeliveryError('permanent', 'the pull request has another head than the agent saw', {
    code: 'branch-moved',
    hint: 'someone has pushed: run the event of that push; the workspace of the rule needs ref: the head of the pull request',
  })

const hints: Hints = {
  403: 'the token may not read pull requests there: it needs the scope repo, or read access to pull requests',
  404: 'there is no such pull request, or the token may not see it (scope repo)',
}
