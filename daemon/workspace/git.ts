import { devNull, totalmem } from 'node:os'
import { oldestGit } from '../../shared/config/workspace.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { ProxyError } from '../../shared/network/faults.ts'
import { openTunnel } from '../../shared/network/outgoing.ts'
import { curlVariables } from '../../shared/network/variables.ts'
import { toPlainText } from '../../shared/text.ts'
import { cleanEnvironment, hideSecrets } from '../agents/environment.ts'
import type { RunProcess } from '../agents/orphans.ts'
import { createCertificates } from './certificates.ts'

/*
 * The one way in which git runs here. A repository comes from outside, and so may a worktree that an agent has
 * changed: git gets no configuration but ours, no hook, filter or helper of theirs, and one protocol.
 */

/** A repository at another place, and what opens it. */
export type Remote = {
  readonly url: string
  readonly protocol: 'https' | 'http' | 'file'
  /** For this origin alone, and only when it asks. */
  readonly credential?:
    { readonly origin: string; readonly username: string; readonly token: string } | undefined
  /** The login that opens it, there or not. */
  readonly login?: string | undefined
}

export type GitOptions = {
  /** Of the repository, where there is one yet. */
  readonly gitDir?: string | undefined
  readonly worktree?: string | undefined
  readonly index?: string | undefined
  readonly cwd: string
  /** Nothing is fetched without it, not even what a partial clone left out. */
  readonly remote?: Remote | undefined
  readonly input?: string | Uint8Array
  readonly signal: AbortSignal
  readonly timeoutMs?: number
  readonly outputLimitBytes?: number
}

export type GitOutput = {
  readonly stdout: Buffer
  /** True when the output was longer than the limit. */
  readonly cut: boolean
}

/** Runs git. Throws `GitFailed`, or a `DoorwardError` where git is missing, or stopped. */
export type Git = (args: readonly string[], options: GitOptions) => Promise<GitOutput>

/** The text that git wrote to standard error, without a token. */
export class GitFailed extends Error {
  override readonly name = 'GitFailed'
  /** Set where the proxy prevented it. */
  readonly proxy: ProxyError | undefined

  constructor(message: string, proxy?: ProxyError) {
    super(message)
    this.proxy = proxy
  }
}

const defaultTimeoutMs = 30 * 60_000
const defaultLimitBytes = 256 * 1024 * 1024

/** Data that each process of git may have in memory: half of what the machine, or the container, has. */
const maxMemoryBytes = Math.min(
  4 * 1024 ** 3,
  totalmem() / 2,
  (process.constrainedMemory() || Number.POSITIVE_INFINITY) / 2,
)

/** Fails where a lower limit is in force already; git runs in any case. */
const limited = `ulimit -d ${Math.floor(maxMemoryBytes / 1024)} 2>/dev/null; exec git "$@"`

/** Only Linux counts all data of a process (`RLIMIT_DATA`). */
const toArgv = (args: readonly string[]): string[] =>
  process.platform === 'linux' ? ['/bin/sh', '-c', limited, 'git', ...args] : ['git', ...args]

/** Exit codes of the shell. */
const notFound = [126, 127]

/** `folder` is for the file of certificates: that of the home with what runs. */
export const createGit = (run: RunProcess, env: NodeJS.ProcessEnv, folder: string): Git => {
  let isNewEnough = false
  const certificates = createCertificates(env, folder)
  const git: Git = async (args, options) => {
    const { cwd, remote, signal, timeoutMs = defaultTimeoutMs } = options
    const { outputLimitBytes = defaultLimitBytes } = options
    const trusted = remote?.protocol === 'https' ? await certificates() : undefined
    const result = await run({
      argv: toArgv(args),
      cwd,
      env: {
        ...ownEnvironment(env),
        ...(remote && remote.protocol !== 'file' && curlVariables(new URL(remote.url), env)),
        ...(trusted !== undefined && { GIT_SSL_CAINFO: trusted, GIT_PROXY_SSL_CAINFO: trusted }),
        ...toVariables(options),
      },
      input: options.input ?? '',
      timeoutMs,
      outputLimitBytes,
      stopsWhenCut: true,
      signal,
    }).catch((error: unknown) => {
      throw toStartError(error)
    })
    if (result.reason === 'stopped')
      throw new DoorwardError('agent-stopped', 'git was stopped because the daemon stops')
    if (result.reason === 'timeout')
      throw new DoorwardError(
        'workspace-failed',
        `git ${args.find((arg) => /^[a-z-]*$/.test(arg) && !arg.startsWith('-')) ?? ''} took longer than ${timeoutMs / 60_000} min`,
      )
    if (notFound.includes(result.exitCode ?? 0)) throw toMissing()
    if (result.exitCode !== 0 && !result.cut) {
      const { token } = remote?.credential ?? {}
      const secrets = new Map(token === undefined ? [] : [[token, 'token']])
      const text = hideSecrets(toPlainText(result.stderr.toString()).trim(), secrets)
      throw new GitFailed(text, remote && (await findProxyFault(text, remote, signal)))
    }
    return result
  }
  return async (args, options) => {
    if (!isNewEnough) checkVersion(String((await git(['version'], options)).stdout))
    isNewEnough = true
    return git(args, options)
  }
}

const proxyLimitMs = 10_000

/** Asks the proxy ourselves after a connection of git has failed: the words of curl depend on its version. */
const findProxyFault = async (
  text: string,
  { url, protocol }: Remote,
  signal: AbortSignal,
): Promise<ProxyError | undefined> => {
  if (protocol !== 'https' || !text.includes('unable to access')) return undefined
  try {
    const socket = await openTunnel(new URL(url), proxyLimitMs, signal)
    socket?.on('error', () => undefined).destroy()
    return undefined
  } catch (error) {
    return error instanceof ProxyError ? error : undefined
  }
}

const checkVersion = (text: string): void => {
  const parts = (version: string) =>
    (/\d+(\.\d+)*/.exec(version)?.[0] ?? '0').split('.').map(Number)
  const [[major = 0, minor = 0], [oldMajor = 0, oldMinor = 0]] = [parts(text), parts(oldestGit)]
  if (major > oldMajor || (major === oldMajor && minor >= oldMinor)) return
  throw new DoorwardError(
    'workspace-git-missing',
    `git ${major}.${minor} is too old for a workspace`,
    { hint: `install git ${oldestGit} or newer` },
  )
}

const toStartError = (error: unknown): unknown =>
  systemCode(error) === 'ENOENT' || systemCode(error) === 'EACCES' ? toMissing(error) : error

const toMissing = (cause?: unknown): DoorwardError =>
  new DoorwardError('workspace-git-missing', "there is no git on the daemon's PATH", {
    cause,
    hint: `install git ${oldestGit} or newer, then: doorward daemon stop && doorward daemon start`,
  })

/** Without the owner's files: no configuration, `.netrc`, key, agent or helper. */
const ownEnvironment = (env: NodeJS.ProcessEnv): Record<string, string> => ({
  ...cleanEnvironment(env, {}),
  HOME: devNull,
  USERPROFILE: devNull,
  XDG_CONFIG_HOME: devNull,
  LANGUAGE: '',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: devNull,
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_OPTIONAL_LOCKS: '0',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_LITERAL_PATHSPECS: '1',
  GIT_AUTHOR_NAME: 'doorward',
  GIT_AUTHOR_EMAIL: 'doorward@localhost',
  GIT_COMMITTER_NAME: 'doorward',
  GIT_COMMITTER_EMAIL: 'doorward@localhost',
})

/** The author of what doorward commits. */
export const doorwardIdentity = 'doorward <doorward@localhost>'

const settings: readonly (readonly [name: string, value: string])[] = [
  ['core.hooksPath', devNull],
  ['core.fsmonitor', 'false'],
  ['core.attributesFile', devNull],
  ['core.excludesFile', devNull],
  ['core.autocrlf', 'false'],
  // A larger file is binary: a diff of it needs up to 44 times its size in memory.
  ['core.bigFileThreshold', '16m'],
  ['core.protectHFS', 'true'],
  ['core.protectNTFS', 'true'],
  ['protocol.allow', 'never'],
  ['http.followRedirects', 'false'],
  // A connection that moves less than 1 KB/s for a minute is dead.
  ['http.lowSpeedLimit', '1000'],
  ['http.lowSpeedTime', '60'],
  // Empty: no other helper is asked.
  ['credential.helper', ''],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['fetch.unpackLimit', '1'],
  // A cleanup runs while we wait for git, not after it.
  ['gc.autoDetach', 'false'],
  ['maintenance.autoDetach', 'false'],
  ['checkout.workers', '0'],
  ['diff.ignoreSubmodules', 'all'],
]

const toVariables = (options: GitOptions): Record<string, string> => {
  const { gitDir, worktree, index, remote } = options
  const pairs = [...settings]
  if (remote) pairs.push([`protocol.${remote.protocol}.allow`, 'always'])
  const { origin, username = '', token = '' } = remote?.credential ?? {}
  if (origin !== undefined) pairs.push([`credential.${origin}.helper`, helper])
  return {
    ...(gitDir !== undefined && { GIT_DIR: gitDir }),
    ...(worktree !== undefined && { GIT_WORK_TREE: worktree }),
    ...(index !== undefined && { GIT_INDEX_FILE: index }),
    ...(origin !== undefined && { [userVariable]: username, [tokenVariable]: token }),
    GIT_CONFIG_COUNT: String(pairs.length),
    ...Object.fromEntries(
      pairs.flatMap(([name, value], place) => [
        [`GIT_CONFIG_KEY_${place}`, name],
        [`GIT_CONFIG_VALUE_${place}`, value],
      ]),
    ),
  }
}

const userVariable = 'DOORWARD_GIT_USER'
const tokenVariable = 'DOORWARD_GIT_TOKEN'

/** Reads the token from its environment: arguments are visible to other users. */
const helper = `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$${userVariable}" "$${tokenVariable}"; }; f`
