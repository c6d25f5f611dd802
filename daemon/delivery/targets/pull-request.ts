import type { ProxyError } from '../../../shared/network/faults.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'
import { type Git, GitFailed, type Remote } from '../../workspace/git.ts'
import { certificateHint } from '../../workspace/mirror.ts'
import { asReadOnly, DeliveryError, TokenRefused } from '../delivery-error.ts'
import { isEmpty, toGithubBody, toTitle } from '../format/parts.ts'
import { checkChange, type CheckedChange } from '../changes/check-change.ts'
import type { OwnMessages } from '../loop-guard.ts'
import type { AgentReply, Attempt, Sender } from '../sender.ts'
import { addLabelsAndReviewers, readLogin, withAuthor } from './pull-request-options.ts'
import type { Grant } from '../token.ts'
import { findListed, type GithubApi, type Hints } from './github-api.ts'

const pushTimeoutMs = 10 * 60_000

/**
 * Pushes what the agent changed to a branch of its own, and opens a pull request with the answer as its text
 * (docs.github.com/rest/pulls/pulls). The agent holds no token: doorward pushes with that of the target.
 */
export const createPullRequest = (
  api: GithubApi,
  gitOrigin: string,
  git: Git,
  messages: OwnMessages,
): Sender => ({
  isIdempotent: true,
  send: async ({ address, text: answer, reply }, attempt) => {
    const [name = '', base] = address.split('@')
    const { change } = reply.code ?? {}
    if (change === undefined)
      throw new DeliveryError('permanent', 'this event has no changes of an agent', {
        hint: 'its rule needs workspace: with access: write',
      })
    if (change === 'none') return 'the agent changed nothing: there is no pull request'
    if (change === 'left-out')
      return 'all that the agent changed is left out: there is no pull request'
    const url = `${gitOrigin}/${name}.git`
    const { gitDir, ref } = change
    const checked = await checkChange(git, { gitDir, ref, url }, reply, attempt)
    const repository = `/repos/${name}`
    const branch = `doorward/${reply.eventId}`
    const [owner = ''] = name.split('/')
    const at = { cwd: gitDir, gitDir, signal: attempt.signal }
    const { commit: commitSettings = {}, pullRequest = {} } = reply.publish ?? {}
    const grant = { repository: name, permissions: toPermissions(reply, checked) }
    return api({ attempt, hints, grant, bot: reply.bot }, async (request, token) => {
      const commit = await withAuthor(git, at, checked.commit, commitSettings, async () =>
        readLogin(request, gitOrigin),
      )
      const finish = async (pull: unknown) =>
        addLabelsAndReviewers(request, repository, valueAt(pull, ['number']), pullRequest)
      const query = `state=all&head=${encodeURIComponent(`${owner}:${branch}`)}`
      const list = { path: `${repository}/pulls?${query}`, what: 'pull requests' }
      const earlier = await findListed(
        request,
        list,
        (pull) => textAt(pull, 'head', 'sha') === commit,
      )
      if (earlier !== undefined) return `an earlier attempt had arrived${await finish(earlier)}`
      const into =
        base ?? textAt((await asReadOnly(request(repository))).json, 'default_branch') ?? 'main'
      messages.rememberCommit(commit)
      const credential = { origin: gitOrigin, username: 'x-access-token', token }
      const protocol = url.startsWith('https:') ? 'https' : 'http'
      await push(git, { gitDir, commit, branch }, { url, protocol, credential }, attempt)
      const body = toGithubBody(orSilent(answer))
      const response = await request(`${repository}/pulls`, {
        body: {
          title: toTitle(body, maxTitle),
          head: branch,
          base: into,
          body,
          ...(pullRequest.draft && { draft: true }),
        },
      })
      await git(['update-ref', '-d', ref, checked.commit], at).catch(() => undefined)
      const note = `pull request #${String(valueAt(response.json, ['number']))}`
      return { note: note + (await finish(response.json)), made: api.toMade(note, response) }
    })
  },
})

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

/** The message of the commit with what an agent changed: the first line of its answer. */
export const toCommitMessage = (answer: string, eventId: string): string =>
  `${toTitle(toGithubBody(orSilent(answer)), maxTitle)}\n\nMade by an agent, for the event ${eventId} of doorward.\n`

type Branch = { readonly gitDir: string; readonly commit: string; readonly branch: string }

/** Never by force: a person may have pushed to the branch. Throws `DeliveryError`, or `TokenRefused`. */
const push = async (
  git: Git,
  { gitDir, commit, branch }: Branch,
  remote: Remote,
  { signal }: Attempt,
): Promise<void> => {
  try {
    const at = { cwd: gitDir, gitDir, remote, signal, timeoutMs: pushTimeoutMs }
    // Finds what the server has, so that nothing old is sent.
    const args = ['-c', 'push.negotiate=true', 'push', '--quiet', '--no-verify', remote.url]
    await git([...args, `${commit}:refs/heads/${branch}`], at)
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error
    throw error.proxy ? toProxyError(error.proxy, branch) : toPushError(error.message, branch)
  }
}

const toProxyError = ({ message, hint, isPermanent }: ProxyError, branch: string): Error =>
  new DeliveryError(
    isPermanent ? 'permanent' : 'retryable',
    `the branch ${branch} was not pushed: ${message}`,
    { hint },
  )

const toPushError = (text: string, branch: string): Error => {
  if (/Authentication failed|could not read (Username|Password)|error: 401/i.test(text))
    return new TokenRefused()
  const [, retryability, message, hint] = pushErrors.find(([form]) => form.test(text)) ?? [
    text,
    'permanent' as const,
    `git failed: ${(text.split('\n').at(-1) ?? '').slice(0, 200)}`,
  ]
  return new DeliveryError(retryability, `the branch ${branch} was not pushed: ${message}`, {
    hint,
  })
}

const pushErrors: readonly (readonly [
  form: RegExp,
  retryability: 'permanent' | 'retryable',
  message: string,
  hint: string,
])[] = [
  [
    /certificate|SSL CA cert/i,
    'permanent',
    'the certificate of the server is not trusted',
    certificateHint,
  ],
  [
    /without [`'"]?workflows?[`'"]? (scope|permission)/i,
    'permanent',
    'the token may not change workflows',
    'log in with the scope workflow: doorward oauth login github --scopes "repo workflow"',
  ],
  [
    /non-fast-forward|fetch first|stale info|already exists/i,
    'permanent',
    'there is one of an earlier run',
    'merge or delete it',
  ],
  [
    /GH0\d\d|protected branch|rule violations|hook declined|\[(remote )?rejected\]/i,
    'permanent',
    'the repository refuses it',
    'its rules and hooks have to allow branches doorward/…',
  ],
  [
    /error: 403|Permission to .* denied|not (have|granted) permission|Write access/i,
    'permanent',
    'the token may not push there',
    'it needs the scope repo, or write access to contents',
  ],
  [
    /error: 404|not found/i,
    'permanent',
    'there is no such repository, or the token may not see it',
    'it needs the scope repo',
  ],
  [/error: 30[1278]|redirect/i, 'permanent', 'the repository was renamed', 'use its new name'],
  [
    /Could not resolve|Failed to connect|Connection|timed out|hung up|early EOF|error: (429|5\d\d)/i,
    'retryable',
    'the server cannot be reached',
    'check the network',
  ],
]

const hints: Hints = {
  403: 'the token may not open a pull request there: it needs the scope repo, or write access to pull requests',
  404: 'there is no such repository, or the token may not see it (scope repo)',
  422: 'GitHub rejects this pull request: its base branch may be missing, or may have the change already, or the repository allows no drafts',
}
