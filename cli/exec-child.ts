import { type ChildProcess, spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { constants } from 'node:os'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { systemReason } from '../shared/home/home.ts'
import { toPlainLine } from '../shared/text.ts'

/*
 * Node cannot replace its own process (execve) before version 23, so the command is a child on our standard
 * streams: signals are forwarded to it, and we exit as it exits. The package foreground-child does the same,
 * but passes on a Ctrl-C that the terminal has already sent to both, does not stop with Ctrl-Z, and starts a
 * second Node as a watchdog.
 */

const forwarded = [
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGHUP',
  'SIGUSR1',
  'SIGUSR2',
  'SIGCONT',
] as const
/** A terminal sends these to the whole foreground group. */
const fromKeys: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT']

/**
 * Runs a command on our own standard streams, then exits with its exit code or by the signal that killed
 * it. Throws `command-not-found` or `command-not-runnable` when it cannot be started.
 */
export const execChild = async (
  program: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<void> => {
  let child: ChildProcess | undefined
  // Before the child starts: a signal must not end this process alone.
  const stopForwarding = forwardSignals((signal) => void child?.kill(signal))
  try {
    child = start(program, args, env)
    const [code, signal] = await waitForExit(child, program)
    stopForwarding()
    if (signal) exitWithSignal(signal)
    else process.exitCode = code ?? 1
  } finally {
    stopForwarding()
  }
}

const start = (program: string, args: readonly string[], env: NodeJS.ProcessEnv): ChildProcess => {
  try {
    return spawn(program, args, { env, stdio: 'inherit' })
  } catch (error) {
    throw toStartError(program, error)
  }
}

const waitForExit = async (child: ChildProcess, program: string) =>
  new Promise<readonly [number | null, NodeJS.Signals | null]>((resolve, reject) => {
    child.on('error', (error) => {
      // With a pid it runs, and only a signal failed, such as to a command of another user (sudo).
      if (child.pid === undefined) reject(toStartError(program, error))
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
      // This system does not have the signal.
    }
  }
  for (const signal of forwarded)
    listen(signal, () => {
      if (!(fromKeys.includes(signal) && isForeground())) send(signal)
    })

  // Ctrl-Z stops the whole group, but `kill -TSTP` reaches only us. We stop by the default action, which
  // the system ignores for a group that no shell could continue.
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

/** True while the terminal sends signals of its keys to our process group, and so to the child too. */
const isForeground = (): boolean => {
  try {
    // proc(5): after the name come state, parent, group, session, terminal, foreground group.
    const stat = readFileSync('/proc/self/stat', 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[4] !== '0' && fields[2] === fields[5]
  } catch {
    // No /proc here. Output on a terminal is the best sign of it.
    return process.stdout.isTTY || process.stderr.isTTY
  }
}

/** Exits by a signal, so that our parent sees what killed the command. */
const exitWithSignal = (signal: NodeJS.Signals): void => {
  // For a signal that does not kill us (Node ignores SIGPIPE): the code that a shell would exit with.
  process.exitCode = 128 + constants.signals[signal]
  try {
    // A core file of ours would contain the tokens (core(5)).
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // Linux only.
  }
  process.kill(process.pid, signal)
}

const toStartError = (program: string, error: unknown): DoorwardError => {
  const shown = toPlainLine(program).slice(0, 200)
  const isPath = program.includes('/')
  // The kernel reports a missing interpreter of a script the same way.
  if (systemCode(error) === 'ENOENT' || program === '')
    return new DoorwardError(
      'command-not-found',
      `cannot run "${shown}": there is no such command`,
      {
        hint: isPath
          ? 'check the path, and the first line of a script'
          : 'check the name, and PATH',
        cause: error,
      },
    )
  const hints: Record<string, string> = {
    ...(isPath && { EACCES: 'chmod +x makes a file executable' }),
    E2BIG: 'pass fewer or shorter arguments, variables or tokens',
  }
  return new DoorwardError(
    'command-not-runnable',
    `cannot run "${shown}": ${systemReason(error)}`,
    { hint: hints[systemCode(error) ?? ''], cause: error },
  )
}
