import { execFile } from 'node:child_process'
// Not 'node:fs/promises': loading it would cost every command a millisecond.
import { promises as files, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { DaemonFile, Status, StatusProblem } from '../api/api.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, systemReason } from '../home/home.ts'
import { isAlive } from '../home/lock.ts'
import { readListeners } from '../network/tcp-table.ts'
import { toPlainLine } from '../text.ts'

/** `run/daemon.json`, or undefined when it is missing or malformed. */
export const readDaemonFile = async (home: Home): Promise<DaemonFile | undefined> => {
  try {
    const value: unknown = JSON.parse(readFileSync(home.daemonJson, 'utf8'))
    return isDaemonFile(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError || systemCode(error) === 'ENOENT') return undefined
    const message = `cannot read ${home.daemonJson}: ${systemReason(error)}`
    throw new DoorwardError('home-unusable', message, { cause: error })
  }
}

const isDaemonFile = (value: unknown): value is DaemonFile =>
  typeof value === 'object' &&
  value !== null &&
  'pid' in value &&
  Number.isSafeInteger(value.pid) &&
  'url' in value &&
  typeof value.url === 'string' &&
  /^http:\/\/(127(\.\d{1,3}){3}|\[::1\]|localhost):\d+$/.test(value.url)

/** A listener at the address of the daemon that is not the daemon; `silent` accepts connections and does not answer in time. */
export type ForeignDaemon = 'other-doorward' | 'stranger' | 'silent'

/**
 * Why the daemon of `run/daemon.json` cannot be used though something listens on its port: another program
 * has the port (`daemon-foreign`), the daemon hangs or has too many connections (`daemon-silent`), or
 * `run/api.token` was replaced after its start (`unauthorized`). Names the process where the system does.
 */
export const foreignDaemonError = async (
  { url, pid }: DaemonFile,
  found: ForeignDaemon | 'hung-up',
): Promise<DoorwardError> => {
  const { port } = new URL(url)
  const owner = await findListeningProcess(Number(port))
  const isDaemon = owner?.pid === pid
  if (found === 'silent' && (owner ? isDaemon : isAlive(pid)))
    return new DoorwardError('daemon-silent', `the daemon (pid ${pid}) does not answer`, {
      // Another program may have the pid of a daemon that crashed, unless the port's process is known.
      hint: `wait; if it hangs: ${isDaemon ? `kill -9 ${pid}` : `stop process ${pid} if it is doorward`}, then doorward daemon start`,
    })
  if (found === 'hung-up' && isDaemon)
    return new DoorwardError('daemon-silent', `the daemon (pid ${pid}) closes each connection`, {
      hint: `it has too many or is stopping: wait; if this persists: kill ${pid}, then doorward daemon start`,
    })
  if (found === 'other-doorward' && isDaemon)
    return new DoorwardError(
      'unauthorized',
      `run/api.token is not the one that the daemon (pid ${pid}) was started with`,
      { hint: `restore the file, or: kill ${pid}, then doorward daemon start` },
    )
  const isDoorward = found === 'other-doorward'
  const who = isDoorward ? 'the daemon of another home' : 'another program'
  const message = owner
    ? `port ${port} is used by ${isDoorward ? who : owner.name} (pid ${owner.pid})${isDoorward ? '' : ', not by the daemon'}`
    : `${who} ${found === 'silent' ? 'listens' : 'answers'} at ${url}, not the daemon of this home`
  return new DoorwardError('daemon-foreign', message, { hint: portTakenHint })
}

/** A process that listens on a port. */
export type ListeningProcess = { readonly pid: number; readonly name: string }

/** The way out when another process uses the daemon's port. */
export const portTakenHint = 'stop it, or choose another port with server.port or DOORWARD_PORT'

/**
 * The process that listens on this TCP port: from `/proc` on Linux, from `lsof` on macOS. Undefined when
 * there is none, when it belongs to another user, and on other systems. Never throws.
 */
export const findListeningProcess = async (port: number): Promise<ListeningProcess | undefined> => {
  try {
    if (process.platform === 'linux') return await findInProc(port)
    if (process.platform === 'darwin') return await findByLsof(port)
  } catch {
    // The process only improves a message.
  }
  return undefined
}

const findInProc = async (port: number): Promise<ListeningProcess | undefined> => {
  const links = new Set((await readListeners(port)).map(({ inode }) => `socket:[${inode}]`))
  if (links.size === 0) return undefined
  for (const name of await files.readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    if (await hasOpen(name, links)) return { pid: Number(name), name: await readProcessName(name) }
  }
  return undefined
}

/** False for a process of another user, whose descriptors are hidden. */
const hasOpen = async (pid: string, links: ReadonlySet<string>): Promise<boolean> => {
  for (const fd of await files.readdir(`/proc/${pid}/fd`).catch(() => [])) {
    const link = await files.readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')
    if (links.has(link)) return true
  }
  return false
}

/** Programs that are better named by the script they run. */
const interpreters = new Set(['node', 'node-MainThread', 'MainThread', 'bun', 'deno', 'ruby'])

/** Only the script of the arguments: others may contain secrets. */
const readProcessName = async (pid: string): Promise<string> => {
  const comm = (await files.readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()
  if (!interpreters.has(comm) && !comm.startsWith('python')) return toPlainLine(comm) || 'unknown'
  const argv = (await files.readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  // The options of a daemon come before its script.
  const [program = comm, script = ''] = argv.filter((word) => !/^--[\w-]+=/.test(word))
  const isScript = /^[^-]/.test(script) && /\.\w{1,4}$|\//.test(script)
  return toPlainLine([basename(program), ...(isScript ? [basename(script)] : [])].join(' '))
}

const findByLsof = async (port: number): Promise<ListeningProcess | undefined> => {
  const { stdout } = await promisify(execFile)(
    'lsof',
    ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpc'],
    { timeout: 5000 },
  )
  return parseLsof(stdout)
}

/** The first process in the output of `lsof -Fpc`: lines `p<pid>` and `c<command>`. */
export const parseLsof = (text: string): ListeningProcess | undefined => {
  const [, pid, name] = /^p(\d+)\nc(.+)$/m.exec(text) ?? []
  return pid === undefined || name === undefined
    ? undefined
    : { pid: Number(pid), name: toPlainLine(name) }
}

type ExitWait = {
  /** Waits for this time; an error that it throws ends the wait. */
  readonly pause?: (ms: number) => Promise<unknown>
  /** True once the caller need not wait any longer. */
  readonly isOver?: () => boolean | Promise<boolean>
}

/** Waits for a process to exit. False when `isOver` ended the wait. Throws what `pause` throws. */
export const waitForProcessExit = async (
  pid: number,
  { pause = delay, isOver = () => false }: ExitWait = {},
): Promise<boolean> => {
  for (let waitMs = 10; isAlive(pid); waitMs = Math.min(waitMs * 1.5, 250)) {
    if (await isOver()) return false
    await pause(waitMs)
  }
  return true
}

/**
 * The error to throw when waiting for a login failed. A daemon that has exited, and its successor, do not
 * know the login any more: then the error says so, with `hint` as the next step.
 */
export const toLostLoginError = (error: unknown, provider: string, hint: string): unknown =>
  error instanceof DoorwardError && lostLoginCodes.has(error.code)
    ? // Not `stopping`: the caller would then ask the next daemon for this login.
      new DoorwardError(
        error.code === 'stopping' ? 'daemon-unreachable' : error.code,
        `the daemon stopped while the login to ${provider} waited`,
        { cause: error, hint },
      )
    : error

const lostLoginCodes: ReadonlySet<string> = new Set([
  'daemon-unreachable',
  'login-not-found',
  'stopping',
])

type Problems = Status['problems']

/** The codes of problems that a new login fixes. */
const loginFixes: ReadonlySet<string> = new Set([
  'deliveries-unread',
  'needs-login',
  'not-logged-in',
  'token-file-damaged',
])

/** The codes of token files that cannot be read and may be good: a chmod or the keychain fixes them. */
const unreadableCodes: ReadonlySet<string> = new Set([
  'home-unusable',
  'keychain-unavailable',
  'token-file-insecure',
])

/** The provider to which a new login fixes a problem. */
export const providerToLogIn = ({
  code,
  about,
}: Pick<StatusProblem, 'code' | 'about'>): string | undefined =>
  loginFixes.has(code) ? about?.provider : undefined

/** The daemon's problem with the login to a provider. */
export const findLoginProblem = (problems: Problems, provider: string): StatusProblem | undefined =>
  problems.find((problem) => providerToLogIn(problem) === provider) ??
  findTokenFileProblem(problems, provider)

/** The same if something other than a new login fixes it. */
export const findTokenFileProblem = (
  problems: Problems,
  provider: string,
): StatusProblem | undefined =>
  problems.find(({ code, about }) => unreadableCodes.has(code) && about?.provider === provider)
