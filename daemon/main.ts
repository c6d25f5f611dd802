#!/usr/bin/env node
import { closeSync, readdirSync, readFileSync } from 'node:fs'
import type { WriteStream } from 'node:tty'
import { parseArgs } from 'node:util'
import { readDaemonFile } from '../shared/client/discovery.ts'
import type { StartMessage } from '../shared/client/spawn.ts'
import { toStartFailure } from '../shared/config/load.ts'
import { DoorwardError, errorDocument } from '../shared/errors.ts'
import { resolveHome } from '../shared/home/home.ts'
import { describeUnfinished } from '../shared/privacy.ts'
import { ignoreSigusr1 } from '../shared/runtime.ts'
import { toPlainJson } from '../shared/text.ts'
import { version } from '../shared/version.ts'
import { channelToOld } from './restart/protocol.ts'
import { type RunningDaemon, startDaemon, takeOver } from './start.ts'

/*
 * The daemon as a process: arguments in, signals in, exit code out. `78` (EX_CONFIG of sysexits.h) tells a
 * service manager that another start is useless until a person has fixed something.
 */

const needsPerson = new Set(['config-invalid', 'home-insecure', 'home-unusable'])

const isSuccessor = (): boolean => process.argv.includes('--take-over')

const wantsJson = (): boolean => process.argv.includes('--json')

const run = async (): Promise<void> => {
  const { values } = parseArgs({
    options: {
      home: { type: 'string' },
      foreground: { type: 'boolean' },
      json: { type: 'boolean' },
      'take-over': { type: 'boolean' },
    },
    strict: true,
  })
  closeInherited()
  // A closed pipe or terminal must not stop the daemon.
  for (const output of [process.stdout, process.stderr]) {
    output.on('error', () => undefined)
    setNonBlocking(output)
  }
  const home = resolveHome(values.home)
  const channel = values['take-over'] ? channelToOld() : undefined
  const starting = channel
    ? takeOver(home, process.env, channel)
    : startDaemon(home, process.env, { isForeground: values.foreground ?? false })
  stopOnSignals(starting)
  const daemon = await starting
  if (channel) return
  if (process.send) reportToParent({ url: daemon.url })
  else if (values.foreground && wantsJson())
    writeJson(process.stdout, { running: true, ...(await readDaemonFile(home)) })
  // For the person at the terminal, or the log of a service manager.
  else if (values.foreground)
    process.stderr.write(`doorward ${version} at ${daemon.url}, log in ${home.log}\n`)
}

/**
 * Closes what a terminal or service manager has left open to us: the programs that we start would inherit it,
 * and from an open folder a path leads out of their sandbox. Node marks the first 16 as not to be inherited,
 * and all of its own.
 */
const closeInherited = (): void => {
  if (process.platform !== 'linux') return
  const closeOnExec = 0o2000000
  for (const fd of readdirSync('/proc/self/fd').map(Number)) {
    if (fd <= 2) continue
    try {
      const info = readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')
      const flags = Number.parseInt(/^flags:\s*([0-7]+)/m.exec(info)?.[1] ?? '', 8)
      if ((flags & closeOnExec) === 0) closeSync(fd)
    } catch {
      // It was the folder that was being read.
    }
  }
}

/** A parent with a channel need not poll. It may have exited. */
const reportToParent = (message: StartMessage): void => {
  process.send?.(message, () => undefined)
}

/**
 * A signal to a whole process group arrives twice where a parent passes it on too: within this time it
 * counts once.
 */
const sameSignalMs = 500

/** From the first moment: a start that is interrupted runs to its end, then stops and leaves nothing. */
const stopOnSignals = (starting: Promise<RunningDaemon>): void => {
  let first: { readonly signal: NodeJS.Signals; readonly at: number } | undefined
  const stop = (signal: NodeJS.Signals) => {
    const earlier = first
    first ??= { signal, at: performance.now() }
    if (earlier?.signal === signal && performance.now() - earlier.at < sameSignalMs) return
    void stopStarted(starting, signal, earlier !== undefined)
  }
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  process.on('SIGHUP', stop)
}

const stopStarted = async (
  starting: Promise<RunningDaemon>,
  signal: NodeJS.Signals,
  now: boolean,
): Promise<void> => {
  // A start that fails reports that itself.
  const daemon = await starting.catch(() => undefined)
  if (!daemon) return
  if (now) return daemon.abort()
  const unfinished = daemon.unfinished()
  // The person at the keyboard would see nothing happen; a terminal has just shown ^C.
  if (signal === 'SIGINT' && unfinished > 0)
    process.stderr.write(
      `${process.stderr.isTTY ? '\n' : ''}stopping ${describeUnfinished(unfinished)}; Ctrl-C again stops immediately\n`,
    )
  await daemon.stop().catch(report)
}

const writeJson = (output: NodeJS.WritableStream, value: unknown): void =>
  void output.write(`${toPlainJson(JSON.stringify(value, null, 2))}\n`)

const report = (error: unknown): void => {
  const known = error instanceof DoorwardError ? error : undefined
  process.exitCode = known && needsPerson.has(known.code) ? 78 : 1
  if (wantsJson()) {
    writeJson(process.stderr, errorDocument(error))
    return
  }
  const message = known?.message ?? (error instanceof Error ? error.message : 'cannot start')
  process.stderr.write(`doorward: ${message}\n`)
  if (known?.hint) process.stderr.write(`hint: ${known.hint}\n`)
}

/**
 * Node writes to a terminal synchronously: one that is not read (Ctrl-S, a stalled connection) would block
 * every request. Only this handle can change that (nodejs.org/api/process.html, "A note on process I/O").
 */
const setNonBlocking = (output: WriteStream): void => {
  const { _handle: handle } = output as unknown as {
    readonly _handle?: { readonly setBlocking?: (isBlocking: boolean) => void }
  }
  if (output.isTTY) handle?.setBlocking?.(false)
}

ignoreSigusr1()
void run().catch((error: unknown) => {
  report(error)
  if (error instanceof DoorwardError && !isSuccessor()) reportToParent(toStartFailure(error))
})
