import { type ChildProcess, spawn } from 'node:child_process'
import { isAlive } from '../../shared/home/lock.ts'
import { createByteCollector } from '../util/byte-budget.ts'
import { longTimeout } from '../util/abort.ts'

export type ProcessOptions = {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly input: string
  readonly timeoutMs: number
  readonly outputLimitBytes: number
  /** Stops the program; with the reason `at-once` it has half a second instead of 5. */
  readonly signal: AbortSignal
  /** Told the number of the process, which is that of its group too, as soon as it runs. */
  readonly onStart?: (pid: number) => void
}

export type Ended = {
  readonly reason: 'exit' | 'timeout' | 'stopped'
  readonly exitCode: number | null
  readonly exitSignal: NodeJS.Signals | null
  /** At most `outputLimitBytes`; the rest was read and thrown away. */
  readonly stdout: Buffer
  readonly cut: boolean
  /** The last 8 KiB. */
  readonly stderr: Buffer
}

const killDelayMs = 5000
const hurriedKillDelayMs = 500
const closeDelayMs = 1000
const stderrBytes = 8192

/**
 * Runs a program in its own process group to its end, or to the end we make: SIGTERM to the group,
 * and SIGKILL after 5 s. Rejects with the system error when it cannot be started.
 */
export const runProcess = async (options: ProcessOptions): Promise<Ended> => {
  const [program = '', ...args] = options.argv
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.env,
    stdio: ['pipe', 'pipe', 'pipe'],
    // Its own process group, so that what it started is ended with it.
    detached: process.platform !== 'win32',
    windowsHide: true,
  })
  if (child.pid !== undefined) options.onStart?.(child.pid)
  const stdout = collectFirst(child, options.outputLimitBytes)
  const stderr = collectLast(child, stderrBytes)
  // A program may end without reading its input: EPIPE is no fault.
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(options.input)

  let reason: Ended['reason'] = 'exit'
  const timers: NodeJS.Timeout[] = []
  const end = (why: 'timeout' | 'stopped', delayMs = killDelayMs) => {
    if (reason !== 'exit') return
    reason = why
    killGroup(child, 'SIGTERM')
    timers.push(setTimeout(() => killGroup(child, 'SIGKILL'), delayMs))
  }
  const stopNow = () =>
    end('stopped', options.signal.reason === 'at-once' ? hurriedKillDelayMs : killDelayMs)
  const isRunning = () => child.exitCode === null && child.signalCode === null
  // It may have ended while we were stopped or the machine slept: one look at what has happened first, and on a
  // busy machine the word of that takes longer.
  const atTimeout = () =>
    setImmediate(() => isRunning() && isAlive(child.pid ?? 0) && end('timeout'))
  const timeout = longTimeout(atTimeout, options.timeoutMs)
  if (options.signal.aborted) stopNow()
  options.signal.addEventListener('abort', stopNow)

  try {
    const [exitCode, exitSignal] = await awaitExit(child, timers)
    return {
      reason,
      exitCode,
      exitSignal,
      stdout: stdout.bytes(),
      cut: stdout.cut(),
      stderr: stderr(),
    }
  } finally {
    options.signal.removeEventListener('abort', stopNow)
    timeout.clear()
    for (const timer of timers) clearTimeout(timer)
  }
}

/**
 * Waits until the program has ended and its output is read, then kills what is left of its group: a
 * child that it leaves behind would work on in a folder that is gone, and outlive our limits. One
 * that holds the output open is waited for a second.
 */
const awaitExit = async (
  child: ChildProcess,
  timers: NodeJS.Timeout[],
): Promise<[number | null, NodeJS.Signals | null]> =>
  new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', () => {
      timers.push(
        setTimeout(() => {
          killGroup(child, 'SIGKILL')
          child.stdout?.destroy()
          child.stderr?.destroy()
        }, closeDelayMs),
      )
    })
    child.once('close', (code, signal) => {
      killGroup(child, 'SIGKILL')
      resolve([code, signal])
    })
  })

const killGroup = (child: ChildProcess, signal: NodeJS.Signals): void => {
  if (child.pid === undefined) return
  try {
    // There are no groups there, and a number may be another's once its process has ended.
    if (process.platform === 'win32') child.kill(signal)
    else process.kill(-child.pid, signal)
  } catch {
    // ESRCH: the group has ended by itself meanwhile.
  }
}

const collectFirst = (child: ChildProcess, limitBytes: number) => {
  const collected = createByteCollector()
  let cut = false
  child.stdout?.on('data', (chunk: Buffer) => {
    const room = limitBytes - collected.size()
    if (chunk.length > room) cut = true
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
