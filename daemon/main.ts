#!/usr/bin/env node
import type { WriteStream } from 'node:tty'
import { parseArgs } from 'node:util'
import { readDaemonFile } from '../shared/client/discovery.ts'
import type { StartMessage } from '../shared/client/spawn.ts'
import { DoorwardError, errorDocument } from '../shared/errors.ts'
import { resolveHome } from '../shared/home/home.ts'
import { describeUnfinished } from '../shared/privacy.ts'
import { ignoreSigusr1 } from '../shared/runtime.ts'
import { toPlainJson } from '../shared/text.ts'
import { version } from '../shared/version.ts'
import { channelToOld } from './restart/protocol.ts'
import { type RunningDaemon, startDaemon, takeOver } from './start.ts'

/*
 * The daemon as a process: arguments in, signals in, exit code out. `78` (EX_CONFIG of sysexits.h)
 * tells a service manager that starting again is of no use until a person has mended something.
 */

const unusable = new Set(['config-invalid', 'home-insecure', 'home-unusable'])

/** The channel of one that is to take over is for that alone. */
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
  // Who read our output may go (a closed pipe or terminal): that must not end the daemon.
  for (const output of [process.stdout, process.stderr]) {
    output.on('error', () => undefined)
    setNonBlocking(output)
  }
  const home = resolveHome(values.home)
  // The daemon that this one is to take over from has opened a channel for that.
  const channel = values['take-over'] ? channelToOld() : undefined
  const starting = channel
    ? takeOver(home, process.env, channel)
    : startDaemon(home, process.env, { isForeground: values.foreground ?? false })
  endOnSignals(starting)
  const daemon = await starting
  if (channel) return
  if (process.send) tellParent({ url: daemon.url })
  else if (values.foreground && wantsJson())
    writeJson(process.stdout, { running: true, ...(await readDaemonFile(home)) })
  // Somebody sits before it, or reads what a service manager keeps.
  else if (values.foreground)
    process.stderr.write(`doorward ${version} at ${daemon.url}, log in ${home.log}\n`)
}

/** A parent with a channel is told; it need not poll. It may have gone. */
const tellParent = (message: StartMessage): void => {
  process.send?.(message, () => undefined)
}

/** Who sends a signal to a whole group and to one who passes it on sends it once: within this time it is one. */
const sameSignalMs = 500

/** From the first moment: a start that is interrupted goes on to its end and leaves nothing. */
const endOnSignals = (starting: Promise<RunningDaemon>): void => {
  let first: { readonly signal: NodeJS.Signals; readonly at: number } | undefined
  const end = (signal: NodeJS.Signals) => {
    const again = first
    first ??= { signal, at: performance.now() }
    if (again?.signal === signal && performance.now() - again.at < sameSignalMs) return
    void endStarted(starting, signal, again !== undefined)
  }
  process.on('SIGTERM', end)
  process.on('SIGINT', end)
  process.on('SIGHUP', end)
}

/** A start that fails says so itself. */
const endStarted = async (
  starting: Promise<RunningDaemon>,
  signal: NodeJS.Signals,
  atOnce: boolean,
): Promise<void> => {
  const daemon = await starting.catch(() => undefined)
  if (!daemon) return
  if (atOnce) return daemon.abort()
  const unfinished = daemon.unfinished()
  // Someone sits at the keyboard and sees nothing happen.
  if (signal === 'SIGINT' && unfinished > 0)
    process.stderr.write(
      // A terminal has just shown ^C.
      `${process.stderr.isTTY ? '\n' : ''}stopping ${describeUnfinished(unfinished)}; Ctrl-C again stops at once\n`,
    )
  await daemon.stop().catch(report)
}

const writeJson = (output: NodeJS.WritableStream, value: unknown): void =>
  void output.write(`${toPlainJson(JSON.stringify(value, null, 2))}\n`)

const report = (error: unknown): void => {
  const known = error instanceof DoorwardError ? error : undefined
  process.exitCode = known && unusable.has(known.code) ? 78 : 1
  if (wantsJson()) {
    writeJson(process.stderr, errorDocument(error))
    return
  }
  const message = known?.message ?? (error instanceof Error ? error.message : 'cannot start')
  process.stderr.write(`doorward: ${message}\n`)
  if (known?.hint) process.stderr.write(`hint: ${known.hint}\n`)
}

/**
 * Node waits for a terminal with everything until that has taken what is written, and one that is not
 * read (Ctrl-S, a connection that stalls) takes nothing: no request would be answered meanwhile. There is
 * no other way to say so than this handle (nodejs.org/api/process.html, "A note on process I/O").
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
  if (error instanceof DoorwardError && !isSuccessor()) tellParent({ code: error.code })
})
