import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { DaemonFile, Status, StatusProblem } from '../api.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, systemReason } from '../home/home.ts'
import { isAlive } from '../home/lock.ts'
import { toPlainLine } from '../text.ts'

/** `run/daemon.json`, or undefined when there is none or it cannot be read as one. */
export const readDaemonFile = async (home: Home): Promise<DaemonFile | undefined> => {
  try {
    const value: unknown = JSON.parse(readFileSync(home.daemonJson, 'utf8'))
    return isDaemonFile(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError || systemCode(error) === 'ENOENT') return undefined
    throw new DoorwardError(
      'home-unusable',
      `cannot read ${home.daemonJson}: ${systemReason(error)}`,
      {
        cause: error,
      },
    )
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

/** Who answers at an address in place of the daemon; `silent` takes connections and does not answer in time. */
export type ForeignDaemon = 'other-doorward' | 'stranger' | 'silent'

/**
 * Why the daemon of `run/daemon.json` cannot be spoken to though something listens there: another
 * program has its port (`daemon-foreign`), it hangs or takes no more connections (`daemon-silent`), or it
 * was started with another token than `run/api.token` holds now (`unauthorized`). Names the process where
 * the system tells.
 */
export const foreignDaemonError = async (
  { url, pid }: DaemonFile,
  impostor: ForeignDaemon | 'hung-up',
): Promise<DoorwardError> => {
  const { port } = new URL(url)
  const holder = await findListeningProcess(Number(port))
  const isDaemon = holder ? holder.pid === pid : isAlive(pid)
  if (impostor === 'silent' && isDaemon)
    return new DoorwardError('daemon-silent', `the daemon (pid ${pid}) does not answer`, {
      hint: `wait; if it hangs: kill -9 ${pid}, then doorward daemon start`,
    })
  // As with its limit of connections reached. Who has only its number would hold the port too.
  if (impostor === 'hung-up' && holder?.pid === pid)
    return new DoorwardError('daemon-silent', `the daemon (pid ${pid}) ends each connection`, {
      hint: `it has too many, or is ending: wait; if it goes on: kill ${pid}, then doorward daemon start`,
    })
  if (impostor === 'other-doorward' && holder?.pid === pid)
    return new DoorwardError(
      'unauthorized',
      `run/api.token is not the one that the daemon (pid ${pid}) was started with`,
      { hint: `put the file back, or: kill ${pid}, then doorward daemon start` },
    )
  const who = impostor === 'other-doorward' ? 'the daemon of another home' : 'another program'
  const message = holder
    ? `port ${port} is held by ${impostor === 'other-doorward' ? `${who} (pid ${holder.pid})` : `${holder.name} (pid ${holder.pid}), not by the daemon`}`
    : `${who} ${impostor === 'silent' ? 'listens' : 'answers'} at ${url}, not the daemon of this home`
  return new DoorwardError('daemon-foreign', message, { hint: portTakenHint })
}

/** A process that listens on a port, by its number and the name it goes by. */
export type ListeningProcess = { readonly pid: number; readonly name: string }

/** What to do about another one that holds the port of the daemon. */
export const portTakenHint = 'stop it, or choose another port with server.port or DOORWARD_PORT'

/**
 * Who listens on this TCP port of this machine, as far as the system tells this user: on Linux by
 * `/proc`, on macOS by `lsof`. Undefined when nobody does, when it is a program of another user, and on
 * other systems. Never throws.
 */
export const findListeningProcess = async (port: number): Promise<ListeningProcess | undefined> => {
  try {
    if (process.platform === 'linux') return await holderInProc(port)
    if (process.platform === 'darwin') return await holderByLsof(port)
  } catch {
    // Who holds a port only makes a message better.
  }
  return undefined
}

/**
 * Whether anybody listens on this TCP port, without a word to who does: on Linux only, elsewhere
 * undefined. Never throws.
 */
export const isPortInUse = async (port: number): Promise<boolean | undefined> =>
  process.platform === 'linux' ? (await inodesAt(port)).length > 0 : undefined

const inodesAt = async (port: number): Promise<string[]> => {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  )
  return tables.flatMap((table) => listeningInodes(table, port))
}

const holderInProc = async (port: number): Promise<ListeningProcess | undefined> => {
  const links = new Set((await inodesAt(port)).map((inode) => `socket:[${inode}]`))
  if (links.size === 0) return undefined
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    if (await hasOpen(name, links)) return { pid: Number(name), name: await readProcessName(name) }
  }
  return undefined
}

/** Inodes of the sockets that listen on a port, in a table of proc_net_tcp(5). */
export const listeningInodes = (table: string, port: number): string[] =>
  table.split('\n').flatMap((line) => {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
    const isListening = state === '0A'
    const isOnPort = Number.parseInt(local?.split(':')[1] ?? '', 16) === port
    return isListening && isOnPort && inode !== undefined ? [inode] : []
  })

/** Of another user's process nothing can be seen. */
const hasOpen = async (pid: string, links: ReadonlySet<string>): Promise<boolean> => {
  for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
    const link = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')
    if (links.has(link)) return true
  }
  return false
}

/** Programs that are known by the file they run. */
const interpreters = new Set(['node', 'node-MainThread', 'MainThread', 'bun', 'deno', 'ruby'])

/** No more than the script of its arguments: those may hold secrets. */
const readProcessName = async (pid: string): Promise<string> => {
  const comm = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()
  if (!interpreters.has(comm) && !comm.startsWith('python')) return toPlainLine(comm) || 'unknown'
  const argv = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  // An option with its value in it stands before the script of a daemon of ours.
  const [program = comm, script = ''] = argv.filter((word) => !/^--[\w-]+=/.test(word))
  const isScript = /^[^-]/.test(script) && /\.\w{1,4}$|\//.test(script)
  return toPlainLine([basename(program), ...(isScript ? [basename(script)] : [])].join(' '))
}

const holderByLsof = async (port: number): Promise<ListeningProcess | undefined> => {
  const { stdout } = await promisify(execFile)(
    'lsof',
    ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpc'],
    { timeout: 5000 },
  )
  return parseLsof(stdout)
}

/** The first process of `lsof -Fpc`: `p<pid>` and `c<command>`, a line each. */
export const parseLsof = (text: string): ListeningProcess | undefined => {
  const [, pid, name] = /^p(\d+)\nc(.+)$/m.exec(text) ?? []
  return pid === undefined || name === undefined
    ? undefined
    : { pid: Number(pid), name: toPlainLine(name) }
}

type UntilGone = {
  /** Waits so many milliseconds; it may throw, which ends it all. */
  readonly pause?: (ms: number) => Promise<unknown>
  /** True once there is nothing to wait for any more. */
  readonly isOver?: () => boolean | Promise<boolean>
}

/** Waits until a process has gone: true when it has, false when it was over before. Throws what `pause` throws. */
export const waitForProcessExit = async (
  pid: number,
  { pause = delay, isOver = () => false }: UntilGone = {},
): Promise<boolean> => {
  for (let waitMs = 10; isAlive(pid); waitMs = Math.min(waitMs * 1.5, 250)) {
    if (await isOver()) return false
    await pause(waitMs)
  }
  return true
}

/**
 * What is thrown where the wait for a login has failed. A daemon that has ended, or another that came after it,
 * knows nothing of that login: then it is said that it is lost, with `hint` as the way out.
 */
export const toLostLoginError = (error: unknown, provider: string, hint: string): unknown =>
  error instanceof DoorwardError && lost.has(error.code)
    ? // Not `stopping`, by which another daemon would be asked for a login that nobody began there.
      new DoorwardError(
        error.code === 'stopping' ? 'daemon-unreachable' : error.code,
        `the daemon ended while the login to ${provider} waited`,
        { cause: error, hint },
      )
    : error

const lost: ReadonlySet<string> = new Set(['daemon-unreachable', 'login-not-found', 'stopping'])

type Problems = Status['problems']

/**
 * What keeps the login to a provider from being used, where the daemon says it. Problems name no
 * provider: one is of a login that its command mends, or of that login's file.
 */
export const findLoginProblem = (problems: Problems, provider: string): StatusProblem | undefined =>
  problems.find(
    ({ detail, hint }) =>
      hint.endsWith(loginCommandFor(provider)) ||
      /[/\\]tokens[/\\]([^/\\]+)\.json/.exec(`${detail} ${hint}`)?.[1] === provider,
  )

/**
 * The same where something else than a new login mends it, such as a chmod of the token file: a login would
 * replace one that is good.
 */
export const findTokenFileProblem = (
  problems: Problems,
  provider: string,
): StatusProblem | undefined => {
  const problem = findLoginProblem(problems, provider)
  return problem?.hint === loginCommandFor(provider) ? undefined : problem
}

const loginCommandFor = (provider: string): string => `doorward oauth login ${provider}`
