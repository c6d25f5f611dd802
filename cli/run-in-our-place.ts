import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { systemReason } from '../shared/home/home.ts'
import { toPlainLine } from '../shared/text.ts'
import { isForeground } from './foreground.ts'

/*
 * Node cannot replace a process by another (execve) before version 23. So the command is a child that
 * has our standard streams, what we are told it is told, and we end the way it ends.
 */

/** Signals that are sent to us and meant for the command. */
const forwarded = [
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGHUP',
  'SIGUSR1',
  'SIGUSR2',
  'SIGCONT',
] as const
/** Those of them that a terminal's keys send to the command as well. */
const fromKeys: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT']

/**
 * Runs a command on our own standard streams, and makes its exit code, or the signal that killed it,
 * ours. Throws `command-not-found` or `command-not-runnable` when it cannot be started.
 */
export const runInOurPlace = async (
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> => {
  let child: ChildProcess | undefined
  // Before there is a child: from its first moment on no signal may end us and leave it behind.
  const stopForwarding = forwardSignals((signal) => void child?.kill(signal))
  try {
    child = start(program, args, env)
    const [code, signal] = await untilEnd(child, program)
    stopForwarding()
    if (signal) dieBy(signal)
    else process.exitCode = code ?? 1
  } finally {
    stopForwarding()
  }
}

const start = (program: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess => {
  try {
    return spawn(program, args, { env, stdio: 'inherit' })
  } catch (error) {
    throw startError(program, error)
  }
}

const untilEnd = async (child: ChildProcess, program: string) =>
  new Promise<readonly [number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.on('error', (error) => {
      // With a pid it runs: then a signal was refused, as by a command of another user (sudo).
      if (child.pid === undefined) reject(startError(program, error))
    })
    child.once('exit', (code, signal) => resolve([code, signal]))
  })

const forwardSignals = (send: (signal: NodeJS.Signals) => void): (() => void) => {
  const listeners = new Map<NodeJS.Signals, () => void>()
  let isOver = false
  const listen = (signal: NodeJS.Signals, listener: () => void) => {
    if (isOver) return
    try {
      process.on(signal, listener)
      listeners.set(signal, listener)
    } catch {
      // This system does not have it.
    }
  }
  for (const signal of forwarded)
    listen(signal, () => {
      if (!(fromKeys.includes(signal) && isForeground())) send(signal)
    })

  // Ctrl-Z stops the whole group without our help, but `kill -TSTP` reaches us alone. To stop ourselves
  // is left to the system: it does not where nobody could wake us again.
  const stop = (): void => {
    if (!isForeground()) send('SIGTSTP')
    process.off('SIGTSTP', stop)
    process.kill(process.pid, 'SIGTSTP')
    setTimeout(() => listen('SIGTSTP', stop), 1000).unref()
  }
  listen('SIGTSTP', stop)

  return () => {
    isOver = true
    for (const [signal, listener] of listeners) process.off(signal, listener)
  }
}

/** Ends this process by a signal, so that whoever waits for us sees what the command died of. */
const dieBy = (signal: NodeJS.Signals): void => {
  // Should it not kill us (Node ignores SIGPIPE), what a shell would end with is left.
  process.exitCode = 128 + constants.signals[signal]
  try {
    // A core file of ours would hold the tokens (core(5): which memory it is made of).
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // Linux only.
  }
  process.kill(process.pid, signal)
}

const startError = (program: string, error: unknown): DoorwardError => {
  const shown = toPlainLine(program).slice(0, 200)
  const isPath = program.includes('/')
  // Of a script whose interpreter is missing the kernel says the same.
  if (systemCode(error) === 'ENOENT' || program === '')
    return new DoorwardError(
      'command-not-found',
      `cannot run "${shown}": there is no such command`,
      {
        hint: isPath ? 'check the path, and the first line of a script' : 'check its name and PATH',
        cause: error,
      },
    )
  return new DoorwardError(
    'command-not-runnable',
    `cannot run "${shown}": ${systemReason(error)}`,
    { hint: isPath ? 'chmod +x makes a file executable' : undefined, cause: error },
  )
}
