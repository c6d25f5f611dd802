import type { AccessToken, DaemonFile } from '../../shared/api/api.ts'
import { type Client, connect } from '../../shared/client/client.ts'
import { readDaemonFile, waitForProcessExit } from '../../shared/client/discovery.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { readLockOwner, isAlive } from '../../shared/home/lock.ts'
import { toPlainLine } from '../../shared/text.ts'
import { version } from '../../shared/version.ts'
import type { Asker } from '../context.ts'
import { pause } from '../terminal/spinner.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** How long to wait for a daemon that is starting or stopping, in milliseconds. */
const usualPatienceMs = 500
/** The same for a command that would start one: another command may be doing so. */
export const startPatienceMs = 10_000

/**
 * Connects to the running daemon of a home. A `run/daemon.json` whose process has exited is ignored:
 * another program may use its port. Throws what `connect` throws.
 */
export const findDaemon = async (asker: Asker): Promise<Client> => {
  if (await hasDaemonFile(asker.home, usualPatienceMs)) return connectToDaemon(asker)
  throw new DoorwardError('daemon-unreachable', 'the daemon is not running', {
    hint: 'doorward daemon start',
  })
}

/**
 * The same, or undefined when none runs. Throws `daemon-foreign` and `daemon-silent`, and
 * `daemon-unreachable` when one runs but its address is unknown.
 */
export const findRunningDaemon = async (
  asker: Asker,
  patienceMs = usualPatienceMs,
): Promise<Client | undefined> => {
  if (!(await hasDaemonFile(asker.home, patienceMs))) return undefined
  try {
    return await connectToDaemon(asker)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'daemon-unreachable') return undefined
    throw error
  }
}

const connectToDaemon = async ({ home, userAgent, terminal }: Asker): Promise<Client> => {
  const client = await connect(home, { userAgent })
  if (terminal) noticeVersion(client.daemon, terminal)
  return client
}

/** True when `run/daemon.json` names a living process. */
const hasDaemonFile = async (home: Home, patienceMs: number): Promise<boolean> => {
  const look = async (): Promise<boolean> => {
    const file = await readDaemonFile(home)
    return file !== undefined && isAlive(file.pid)
  }
  if (await look()) return true
  return waitForDaemonFile(home, look, patienceMs)
}

const lookMs = 50

/**
 * Waits until the daemon that has locked the home has written its file, as `hasDaemonFile` reports. False when no
 * daemon has the lock. Throws `daemon-unreachable` with its pid when that takes too long, for example
 * because the file was deleted.
 */
const waitForDaemonFile = async (
  home: Home,
  hasDaemonFile: () => Promise<boolean>,
  patienceMs: number,
): Promise<boolean> => {
  const until = performance.now() + patienceMs
  for (;;) {
    const pid = await readLockOwner(home, 'daemon')
    // Checked after the lock: the daemon may have written it just now.
    if (await hasDaemonFile()) return true
    if (pid === undefined) return false
    if (performance.now() >= until)
      throw new DoorwardError(
        'daemon-unreachable',
        `the daemon (pid ${pid}) runs, but run/daemon.json is missing or was changed, so its address is unknown`,
        { hint: `kill ${pid}, then doorward daemon start` },
      )
    await pause(lookMs)
  }
}

/** How long a process that no longer answers may take to exit, in milliseconds. */
const patienceMs = 5000

/** True when the daemon did not answer because it was stopping. */
export const hasExited = async (error: unknown, pid: number): Promise<boolean> => {
  if (!(error instanceof DoorwardError && error.code === 'daemon-unreachable')) return false
  const until = Date.now() + patienceMs
  return waitForProcessExit(pid, { isOver: () => Date.now() >= until })
}

let wasPrinted = false

/** Prints once per command that the daemon has another version than this command, as after an upgrade. */
const noticeVersion = (daemon: DaemonFile, terminal: Pick<Terminal, 'say'>): void => {
  if (wasPrinted || daemon.version === version) return
  wasPrinted = true
  terminal.say(
    `the running daemon is version ${toPlainLine(daemon.version)}, this command ${version}: doorward daemon restart`,
  )
}

type TokenOptions = {
  readonly minValiditySeconds?: number | undefined
  /** True for the login of this name, and not the provider's default account. */
  readonly isExact?: boolean
  /** The origin to which git sends the token. */
  readonly gitOrigin?: string
  /** The repository of a bot's token, `owner/name`, and its permissions, `contents:read`, several with commas. */
  readonly repository?: string | undefined
  readonly permissions?: string | undefined
}

/** Fetches an access token. Throws the daemon's error; one that needs a login always has a hint. */
export const fetchAccessToken = async (
  client: Pick<Client, 'get'>,
  provider: string,
  { minValiditySeconds, isExact = false, gitOrigin, repository, permissions }: TokenOptions = {},
): Promise<AccessToken> => {
  const query = [
    ...(minValiditySeconds === undefined ? [] : [`min_validity=${minValiditySeconds}`]),
    ...(isExact ? ['exact=true'] : []),
    ...(gitOrigin === undefined ? [] : [`git_origin=${encodeURIComponent(gitOrigin)}`]),
    ...(repository === undefined ? [] : [`repository=${encodeURIComponent(repository)}`]),
    ...(permissions === undefined ? [] : [`permissions=${encodeURIComponent(permissions)}`]),
  ].join('&')
  const path = `/oauth/tokens/${encodeURIComponent(provider)}/access${query === '' ? '' : `?${query}`}`
  // The daemon may refresh first, and has its own time limits for that.
  const answer = await client
    .get<AccessToken>(path, { timeoutMs: 90_000 })
    .catch((error: unknown) => {
      throw withLogin(error, provider)
    })
  // A token must not be able to start a new line or variable; RFC 6749 appendix A.12 allows no other
  // characters.
  if (typeof answer?.accessToken === 'string' && /^[\x20-\x7e]+$/.test(answer.accessToken))
    return answer
  throw new DoorwardError('internal', `the daemon returned an unusable token of ${provider}`, {
    hint: `doorward oauth login ${provider}`,
  })
}

const withLogin = (error: unknown, provider: string): unknown =>
  error instanceof DoorwardError && (error.code === 'not-logged-in' || error.code === 'needs-login')
    ? new DoorwardError(error.code, error.message, {
        cause: error,
        hint: error.hint ?? `doorward oauth login ${provider}`,
      })
    : error
