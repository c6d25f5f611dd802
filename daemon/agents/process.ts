import { type ChildProcess, spawn } from 'node:child_process'
import { statSync } from 'node:fs'
import { Server } from 'node:net'
import { type Readable, Writable } from 'node:stream'
import { type DoorwardError, systemCode } from '../../shared/errors.ts'
import { isAlive } from '../../shared/home/lock.ts'
import { toAgentError } from './answer.ts'
import type { ReachedLimit } from './sandbox/disk.ts'
import { type Bounds, watchLimits } from './sandbox/limits.ts'
import type { Listeners } from './network/listeners.ts'
import { longTimeout } from '../util/concurrency.ts'
import { createByteCollector } from '../util/byte-budget.ts'

export type ProcessOptions = {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly input: string | Uint8Array
  /** The content of file descriptor 3. */
  readonly filter?: Buffer | undefined
  /** Listening sockets that it hands over before its program starts, by file descriptor 4. */
  readonly listeners?: Listeners | undefined
  /** Ends it when its processes take more. */
  readonly bounds?: Bounds | undefined
  readonly timeoutMs: number
  readonly outputLimitBytes: number
  /** Called with each piece of the standard output. */
  readonly onOutput?: (chunk: Buffer) => void
  /** Kills the program when its output is longer. */
  readonly stopsWhenCut?: boolean
  /** Stops the program; with the reason `immediately` SIGKILL follows after 0.5 s instead of 5 s. */
  readonly signal: AbortSignal
  /** Called with the pid, which is also the process group. */
  readonly onStart?: (pid: number) => void
}

export type ProcessResult = {
  readonly reason: 'exit' | 'timeout' | 'stopped' | ReachedLimit
  readonly exitCode: number | null
  readonly exitSignal: NodeJS.Signals | null
  /** At most `outputLimitBytes`; the rest is discarded. */
  readonly stdout: Buffer
  readonly cut: boolean
  /** The last 8 KiB. */
  readonly stderr: Buffer
}

const killDelayMs = 5000
const immediateKillDelayMs = 500
const closeDelayMs = 1000
const stderrBytes = 8192

/**
 * Runs a program in its own process group until it exits, or is stopped: SIGTERM to the group, SIGKILL
 * after 5 s. Rejects with the system error when it cannot start, with `agent-not-found` where its folder is
 * the reason.
 */
export const runProcess = async (options: ProcessOptions): Promise<ProcessResult> => {
  try {
    return await runChild(options)
  } catch (error) {
    throw toFolderError(options) ?? error
  }
}

const runChild = async (options: ProcessOptions): Promise<ProcessResult> => {
  const { signal } = options
  const [program = '', ...args] = options.argv
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: [
      'pipe',
      'pipe',
      'pipe',
      ...(options.filter || options.listeners ? ['pipe' as const] : []),
      ...(options.listeners ? ['ipc' as const] : []),
    ],
    // Its own process group, so that its children stop with it.
    detached: process.platform !== 'win32',
    windowsHide: true,
  })
  if (child.pid !== undefined) options.onStart?.(child.pid)
  if (options.listeners) takeListeners(child, options.listeners)
  const stdout = collectFirst(child, options.outputLimitBytes, () => {
    if (options.stopsWhenCut) killGroup(child, 'SIGKILL')
  })
  if (options.onOutput) child.stdout?.on('data', options.onOutput)
  const stderr = collectLast(child, stderrBytes)
  // A program may exit without reading its input: EPIPE is not an error.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(options.input)
  const fourth = child.stdio[3]
  if (fourth instanceof Writable) fourth.on('error', () => undefined).end(options.filter)

  let reason: ProcessResult['reason'] = 'exit'
  const timers: NodeJS.Timeout[] = []
  const stop = (why: Exclude<ProcessResult['reason'], 'exit'>, delayMs = killDelayMs) => {
    if (reason !== 'exit') return
    reason = why
    killGroup(child, 'SIGTERM')
    timers.push(setTimeout(() => killGroup(child, 'SIGKILL'), delayMs))
  }
  const unwatch =
    options.bounds && child.pid !== undefined
      ? watchLimits(child.pid, options.bounds, (limit) => {
          stop(limit)
          killGroup(child, 'SIGKILL')
        })
      : undefined
  const onAbort = () =>
    stop('stopped', signal.reason === 'immediately' ? immediateKillDelayMs : killDelayMs)
  const isRunning = () =>
    child.exitCode === null && child.signalCode === null && isAlive(child.pid ?? 0)
  // It may have exited in time while the machine slept: read pending events first, then ask the system.
  const onTimeout = () => setImmediate(() => isRunning() && stop('timeout'))
  const timeout = longTimeout(onTimeout, options.timeoutMs)
  if (signal.aborted) onAbort()
  signal.addEventListener('abort', onAbort)

  try {
    const [exitCode, exitSignal] = await waitForExit(child, timers)
    return {
      reason,
      exitCode,
      exitSignal,
      stdout: stdout.bytes(),
      cut: stdout.cut(),
      stderr: stderr(),
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    clearTimeout(timeout)
    unwatch?.()
    for (const timer of timers) clearTimeout(timer)
  }
}

/** Ends the channel with the last of them: the program must not have it. */
const takeListeners = (child: ChildProcess, { ports, onListener }: Listeners): void => {
  let missing = ports.length
  child.on('message', (port, listener) => {
    if (!(listener instanceof Server) || missing === 0) return
    missing -= 1
    onListener(Number(port), listener)
    if (missing === 0) child.disconnect()
  })
}

/** The system reports a missing working folder as it reports a missing program. */
export const toFolderError = ({
  argv,
  cwd,
}: Pick<ProcessOptions, 'argv' | 'cwd'>): DoorwardError | undefined => {
  let problem = 'does not exist'
  try {
    if (statSync(cwd).isDirectory()) return undefined
    problem = 'is a file'
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return undefined
  }
  const message = `cannot start ${argv[0] ?? ''}: its cwd ${cwd} ${problem}`
  const hint = 'create the folder, or name another: doorward config edit agents'
  return toAgentError('agent-not-found', message, { hint })
}

/**
 * Waits for the exit and the end of the output, then kills the rest of the group: a child left behind
 * would work in a removed folder, beyond our limits. Waits one second for a child that keeps the output
 * open.
 */
const waitForExit = async (
  child: ChildProcess,
  timers: NodeJS.Timeout[],
): Promise<[number | null, NodeJS.Signals | null]> =>
  new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      timers.push(
        setTimeout(() => {
          killGroup(child, 'SIGKILL')
          child.stdout?.destroy()
          child.stderr?.destroy()
        }, closeDelayMs),
      )
      // Node emits no 'close' for a child whose channel we have ended.
      const end = () => {
        killGroup(child, 'SIGKILL')
        resolve([code, signal])
      }
      void Promise.all([child.stdout, child.stderr].map(untilClosed)).then(end)
    })
  })

const untilClosed = async (stream: Readable | null): Promise<void> =>
  new Promise((resolve) => {
    if (!stream || stream.closed) resolve()
    else stream.once('close', resolve)
  })

const killGroup = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined) return
  try {
    // Windows has no process groups, and reuses pids.
    if (process.platform === 'win32') child.kill(signal)
    else process.kill(-child.pid, signal)
  } catch {
    // ESRCH: the group has exited.
  }
}

const collectFirst = (child: ChildProcess, limitBytes: number, onCut: () => void) => {
  const collected = createByteCollector()
  let cut = false
  child.stdout?.on('data', (chunk: Buffer) => {
    const room = limitBytes - collected.size()
    if (chunk.length > room && !cut) {
      cut = true
      onCut()
    }
    collected.add(chunk.subarray(0, room))
  })
  return { bytes: () => collected.bytes(), cut: () => cut }
}

const collectLast = (child: ChildProcess, limitBytes: number) => {
  let last = Buffer.alloc(0)
  child.stderr?.on('data', (chunk: Buffer) => {
    last = Buffer.concat([last, chunk]).subarray(-limitBytes)
  })
  return () => last
}
