import type { ErrorCode } from '../../../shared/errors.ts'
import type { ProxyError } from '../../../shared/network/faults.ts'
import { type Git, GitFailed, type Remote } from '../../workspace/git.ts'
import { certificateHint } from '../../workspace/mirror.ts'
import { DeliveryError, TokenRefused } from '../delivery-error.ts'
import type { Attempt } from '../sender.ts'

const timeoutMs = 10 * 60_000

type Branch = { readonly gitDir: string; readonly commit: string; readonly branch: string }

/** Never by force: a person may have pushed to the branch. Throws `DeliveryError`, or `TokenRefused`. */
export const pushCommit = async (
  git: Git,
  { gitDir, commit, branch }: Branch,
  remote: Remote,
  { signal }: Attempt,
): Promise<void> => {
  try {
    const at = { cwd: gitDir, gitDir, remote, signal, timeoutMs }
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
  const [, retryability, message, hint, code] = pushErrors.find(([form]) => form.test(text)) ?? [
    text,
    'permanent' as const,
    `git failed: ${(text.split('\n').at(-1) ?? '').slice(0, 200)}`,
  ]
  return new DeliveryError(retryability, `the branch ${branch} was not pushed: ${message}`, {
    hint,
    ...(code && { code }),
  })
}

/** The commit of a branch of the repository of the mirror. Throws `DeliveryError`, or `TokenRefused`. */
export const fetchBranch = async (
  git: Git,
  { gitDir, branch }: Omit<Branch, 'commit'>,
  remote: Remote,
  { signal }: Attempt,
): Promise<string> => {
  const at = { cwd: gitDir, gitDir, signal }
  const ref = `refs/doorward/branches/${branch}`
  try {
    const args = ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', 'origin']
    await git([...args, `+refs/heads/${branch}:${ref}`], { ...at, remote, timeoutMs })
    return String((await git(['rev-parse', `${ref}^{commit}`], at)).stdout).trim()
  } catch (error) {
    if (!(error instanceof GitFailed)) throw error
    throw error.proxy ? toProxyError(error.proxy, branch) : toPushError(error.message, branch)
  }
}

const pushErrors: readonly (readonly [
  form: RegExp,
  retryability: 'permanent' | 'retryable',
  message: string,
  hint: string,
  code?: ErrorCode,
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
    'branch-moved',
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
