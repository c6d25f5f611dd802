import type { AccessToken, DaemonFile } from '../../shared/api.ts'
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

/** How long a daemon that is only just starting or ending is waited for, in milliseconds. */
const usualPatienceMs = 500
/** The same for a command that would start one itself: another command may just be doing so. */
export const startPatienceMs = 10_000

/**
 * Connects to the daemon of a home if it runs. A `run/daemon.json` whose process has gone is not
 * trusted: another program may have its port by now. Throws as `connect` does.
 */
export const findDaemon = async (asker: Asker): Promise<Client> => {
  if (await isTold(asker.home, usualPatienceMs)) return connectTold(asker)
  throw new DoorwardError('daemon-unreachable', 'the daemon is not running', {
    hint: 'doorward daemon start',
  })
}

/**
 * The same, or undefined when none runs. Throws `daemon-foreign` and `daemon-silent`, and
 * `daemon-unreachable` when one runs and nothing says where.
 */
export const findRunningDaemon = async (
  asker: Asker,
  patienceMs = usualPatienceMs,
): Promise<Client | undefined> => {
  if (!(await isTold(asker.home, patienceMs))) return undefined
  try {
    return await connectTold(asker)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'daemon-unreachable') return undefined
    throw error
  }
}

const connectTold = async ({ home, userAgent, terminal }: Asker): Promise<Client> => {
  const client = await connect(home, { userAgent })
  if (terminal) noticeVersion(client.daemon, terminal)
  return client
}

/** Whether `run/daemon.json` names a process that lives. */
const isTold = async (home: Home, patienceMs: number): Promise<boolean> => {
  const look = async (): Promise<boolean> => {
    const file = await readDaemonFile(home)
    return file !== undefined && isAlive(file.pid)
  }
  if (await look()) return true
  return untilTold(home, look, patienceMs)
}

const lookMs = 50

/**
 * Waits for a daemon that has locked the home to say where it is, as `isTold` sees it. False when none has,
 * or has any more. Throws `daemon-unreachable` with its pid when that takes too long, as where somebody has
 * removed what it had said.
 */
const untilTold = async (
  home: Home,
  isTold: () => Promise<boolean>,
  patienceMs: number,
): Promise<boolean> => {
  const until = performance.now() + patienceMs
  for (;;) {
    const pid = await readLockOwner(home, 'daemon')
    // Looked at after the lock: it may just have said so.
    if (await isTold()) return true
    if (pid === undefined) return false
    if (performance.now() >= until)
      throw new DoorwardError(
        'daemon-unreachable',
        `the daemon (pid ${pid}) runs, but run/daemon.json does not say where: it is missing, or was changed`,
        {
          hint: `wait some seconds: it writes the file where it is missing; if that does not help: kill ${pid}, then doorward daemon start`,
        },
      )
    await pause(lookMs)
  }
}

/** How long a process that answers no more may take to be gone, in milliseconds. */
const patienceMs = 5000

/** Whether the daemon gave no answer because it was about to end, by another command or a signal. */
export const hasEnded = async (error: unknown, pid: number): Promise<boolean> => {
  if (!(error instanceof DoorwardError && error.code === 'daemon-unreachable')) return false
  const until = Date.now() + patienceMs
  return waitForProcessExit(pid, { isOver: () => Date.now() >= until })
}

let wasPrinted = false

/** Says once per command that the daemon is of another version than this command, as after an upgrade. */
const noticeVersion = (daemon: DaemonFile, terminal: Pick<Terminal, 'say'>): void => {
  if (wasPrinted || daemon.version === version) return
  wasPrinted = true
  terminal.say(
    `the running daemon is version ${toPlainLine(daemon.version)}, this command ${version}: doorward daemon restart`,
  )
}

/**
 * A fresh access token of a provider, valid for so many seconds more where that is asked for. Throws
 * what the daemon refuses it with, and a login that is needed never without a hint.
 */
export const fetchAccessToken = async (
  client: Pick<Client, 'get'>,
  provider: string,
  minValiditySeconds?: number,
): Promise<AccessToken> => {
  const query = minValiditySeconds === undefined ? '' : `?min_validity=${minValiditySeconds}`
  const path = `/oauth/tokens/${encodeURIComponent(provider)}/access${query}`
  // A refresh may come first: the daemon has time limits of its own for that.
  const answer = await client
    .get<AccessToken>(path, { timeoutMs: 90_000 })
    .catch((error: unknown) => {
      throw withLogin(error, provider)
    })
  // What goes into a variable or a line of a protocol must not be able to begin another one; RFC 6749
  // appendix A.12 allows no other characters.
  if (typeof answer?.accessToken === 'string' && /^[\x20-\x7e]+$/.test(answer.accessToken))
    return answer
  throw new DoorwardError('internal', `the daemon gave no usable token of ${provider}`, {
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

/** The token alone, or with `--json` the daemon's whole answer. */
export const showToken = (terminal: Terminal, answer: AccessToken): void => {
  if (terminal.json) terminal.printJson(answer)
  else terminal.print(answer.accessToken)
}
