import { textAt, valueAt } from '../../../util/payload-path.ts'
import type { Git, Remote } from '../../../workspace/git.ts'
import { askPerson, type Attempts, numberOf } from '../../changes/attempts.ts'
import { describeChange } from '../../changes/describe-change.ts'
import { checkChange, type CheckedChange } from '../../changes/check-change.ts'
import { findPulls, type FoundPulls, toPlace, toPullBody } from '../../changes/own-pulls.ts'
import { placeOnHead } from '../../changes/place-on-head.ts'
import { fetchBranch, pushCommit } from '../../changes/push-commit.ts'
import { asReadOnly, DeliveryError } from '../../delivery-error.ts'
import { breakClosing } from '../../format/commands.ts'
import { toLinkHosts } from '../../format/links.ts'
import { isEmpty, toGithubBody, toHarmlessTitle } from '../../format/parts.ts'
import type { CommentMarks, OwnMessages } from '../../loop-guard.ts'
import type { AgentReply, Attempt, Sender, Sent } from '../../sender.ts'
import type { Grant } from '../../token.ts'
import type { GithubApi, GithubRequest, Hints } from './github-api.ts'
import { addLabelsAndReviewers, readLogin, withAuthor } from './pull-request-options.ts'

const usualAttempts = 2

/** The parts that publish a change. */
export type ChangeParts = {
  readonly attempts: Attempts
  readonly git: Git
  readonly marks: CommentMarks
  readonly messages: OwnMessages
}

/**
 * Pushes what the agent changed to a branch of its rule and subject, and opens a pull request with the answer as its
 * text (docs.github.com/rest/pulls/pulls), or adds a commit to the open one. The agent holds no token: doorward
 * pushes with that of the target.
 */
export const createPullRequest = (
  api: GithubApi,
  gitOrigin: string,
  parts: ChangeParts,
): Sender => ({
  isIdempotent: true,
  preview: async ({ address, text: answer, reply }) => {
    const { git, marks } = parts
    const change = requireChange(reply)
    if (typeof change === 'string') return `${change}: there is no pull request`
    const [name = ''] = address.split('@')
    const words = toWords(answer, gitOrigin, reply)
    const { line } = toPlace(reply, address, marks)
    const { body } = toPullBody(reply, words, line, `${gitOrigin}/${name}`, marks)
    return `${toHarmlessTitle(orSilent(answer), maxTitle)}\n\n${body}\n\n${await describeChange(git, change)}`
  },
  send: async ({ address, text: answer, reply }, attempt) => {
    const { git, marks, attempts } = parts
    const [name = '', base] = address.split('@')
    const change = requireChange(reply)
    if (typeof change === 'string') return `${change}: there is no pull request`
    const url = `${gitOrigin}/${name}.git`
    const { gitDir, ref } = change
    const check = async (commit: string) =>
      checkChange(git, { gitDir, ref: commit, url }, reply, attempt)
    const checked = await check(ref)
    const at = { cwd: gitDir, gitDir, signal: attempt.signal }
    const grant = { repository: name, permissions: toPermissions(reply, checked) }
    return api({ attempt, hints, grant, bot: reply.bot }, async (request, token) => {
      const { commit: settings = {} } = reply.publish ?? {}
      const commit = await withAuthor(
        git,
        at,
        checked.commit,
        { ...settings, bot: reply.bot },
        async () => readLogin(request, gitOrigin, reply.bot),
      )
      const place = toPlace(reply, address, marks)
      const found = await findPulls(request, name, place, commit)
      if (found.hasArrived) return 'an earlier attempt had arrived'
      const limit = reply.publish?.maxAttempts ?? usualAttempts
      if (place.line !== undefined && (await attempts.count(reply)) >= limit) {
        const number = numberOf(found.open ?? found.newest)
        return askPerson({ request, api, marks, reply, limit, repository: name, number })
      }
      const words = toWords(answer, gitOrigin, reply)
      const text = toPullBody(reply, words, place.line, `${gitOrigin}/${name}`, marks)
      const title = toHarmlessTitle(orSilent(answer), maxTitle)
      const pulls = { request, repository: `/repos/${name}`, found, text, title, base }
      const remote = toRemote(url, gitOrigin, token)
      const pushing = { ...parts, api, reply, attempt, gitDir, remote, check, commit }
      const sent =
        found.open === undefined ? await open(pulls, pushing) : await update(pulls, pushing)
      await git(['update-ref', '-d', ref, checked.commit], at).catch(() => undefined)
      return sent
    })
  },
})

/** What the agent of this event changed, or in words that there is nothing. Throws `DeliveryError`. */
export const requireChange = ({ code }: AgentReply): PublishedChange | string => {
  const { change } = code ?? {}
  if (change === undefined)
    throw new DeliveryError('permanent', 'this event has no changes of an agent', {
      hint: 'its rule needs workspace: with access: write',
    })
  if (change === 'none') return 'the agent changed nothing'
  return change === 'left-out' ? 'all that the agent changed is left out' : change
}

type PublishedChange = { readonly gitDir: string; readonly ref: string }

/** The repository of a target, with its token. */
export const toRemote = (url: string, origin: string, token: string): Remote => ({
  url,
  protocol: url.startsWith('https:') ? 'https' : 'http',
  credential: { origin, username: 'x-access-token', token },
})

type Pulls = {
  readonly request: GithubRequest
  readonly repository: string
  readonly found: FoundPulls
  readonly text: ReturnType<typeof toPullBody>
  readonly title: string
  readonly base: string | undefined
}

type Pushing = ChangeParts & {
  readonly api: GithubApi
  readonly reply: AgentReply
  readonly attempt: Attempt
  readonly gitDir: string
  readonly remote: Remote
  readonly check: (commit: string) => Promise<CheckedChange>
  readonly commit: string
}

const open = async (
  { request, repository, found: { branch }, text, title, base }: Pulls,
  { git, messages, attempts, api, reply, attempt, gitDir, remote, commit }: Pushing,
): Promise<Sent> => {
  const { pullRequest = {} } = reply.publish ?? {}
  const into =
    base ?? textAt((await asReadOnly(request(repository))).json, 'default_branch') ?? 'main'
  messages.rememberCommit(commit)
  await pushCommit(git, { gitDir, commit, branch }, remote, attempt)
  const uncounted = await attempts.note(reply)
  const response = await request(`${repository}/pulls`, {
    body: {
      title,
      head: branch,
      base: into,
      body: text.body,
      ...(pullRequest.draft && { draft: true }),
    },
  })
  const number = valueAt(response.json, ['number'])
  const note = `pull request #${String(number)}`
  const more = await addLabelsAndReviewers(request, repository, number, pullRequest)
  return { note: note + more + uncounted, made: api.toMade(note, response) }
}

/** A commit on top of the branch, and the newer text, unless a person has written there. */
const update = async (
  { request, repository, found: { branch, open }, text }: Pulls,
  { git, marks, messages, attempts, api, reply, attempt, gitDir, remote, check, commit }: Pushing,
): Promise<Sent> => {
  const number = String(valueAt(open, ['number']))
  const earlier = textAt(open, 'body') ?? ''
  const isThere = text.mark === '' || earlier.startsWith(text.mark)
  const head = await fetchBranch(git, { gitDir, branch }, remote, attempt)
  const at = { cwd: gitDir, gitDir, remote, signal: attempt.signal }
  const placed = await placeOnHead(git, at, commit, head, branch)
  let uncounted = ''
  if (placed !== head) {
    // A merge can follow a folder to its new name.
    await check(placed)
    messages.rememberCommit(placed)
    await pushCommit(git, { gitDir, commit: placed, branch }, remote, attempt)
    uncounted = await attempts.note(reply)
  }
  const page = { json: { html_url: textAt(open, 'html_url') } }
  const made = api.toMade(`pull request #${number}`, page)
  if (isThere && placed === head) {
    const { pullRequest = {} } = reply.publish ?? {}
    const more = await addLabelsAndReviewers(request, repository, number, pullRequest)
    return { note: `an earlier attempt had arrived${more}`, made }
  }
  const note = `pull request #${number}, ${placed === head ? 'which has this change already' : 'updated'}${uncounted}`
  if (!marks.isOwn(earlier)) return { note: `${note}; someone changed its text, which stays`, made }
  const body = { body: text.body }
  await request(`${repository}/pulls/${number}`, { method: 'PATCH', body })
  return { note, made }
}

/** Labels belong to issues. */
const toPermissions = (
  { publish }: AgentReply,
  { hasWorkflows }: CheckedChange,
): Grant['permissions'] => ({
  contents: 'write',
  pull_requests: 'write',
  ...(publish?.pullRequest?.labels && { issues: 'write' }),
  ...(hasWorkflows && { workflows: 'write' }),
})

const maxTitle = 100

/** An agent that has changed files may answer with nothing. */
const orSilent = (answer: string): string =>
  isEmpty(answer) ? 'Change by an agent\n\nThe agent answered with no text.' : answer

/** The text of a pull request. It may become the message of a commit, in which code is text. */
const toWords = (answer: string, gitOrigin: string, reply: AgentReply): string =>
  breakClosing(toGithubBody(orSilent(answer), toLinkHosts(gitOrigin, reply)))

/** The message of the commit with what an agent changed: the first line of its answer. */
export const toCommitMessage = (answer: string, eventId: string): string =>
  `${toHarmlessTitle(orSilent(answer), maxTitle)}\n\nMade by an agent, for the event ${eventId} of doorward.\n`

const hints: Hints = {
  403: 'the token may not open a pull request there: it needs the scope repo, or write access to pull requests',
  404: 'there is no such repository, or the token may not see it (scope repo)',
  422: 'GitHub rejects this pull request: its base branch may be missing, or may have the change already, or the repository allows no drafts',
}
