import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, fchmodSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { About, ErrorCode } from '../errors.ts'
import type { Home } from '../home/home.ts'
import { daemonProgram, packageFolder } from '../version.ts'

/** The path of the daemon's program. */
export const daemonMain = fileURLToPath(new URL(daemonProgram, packageFolder))

/** The file with the standard error of a background daemon, emptied at each start. */
export const getStderrPath = (home: Home): string => join(home.logs, 'daemon.stderr')

/** Why a daemon did not start; `detail` is one line. */
export type StartFailure = {
  readonly code: ErrorCode
  readonly detail: string
  readonly about?: About
}

/** The one message of a daemon to the process that started it: where it listens, or why it failed. */
export type StartMessage = { readonly url: string } | StartFailure

/**
 * Starts the daemon as a detached process. It sends a `StartMessage` on its channel; a caller that does not
 * need the message disconnects. Throws errors of the file system.
 */
export const spawnDaemon = (home: Home): ChildProcess => {
  const stderr = openSync(getStderrPath(home), 'w', 0o600)
  try {
    fchmodSync(stderr, 0o600)
    return spawn(process.execPath, [...nodeOptions, daemonMain, '--home', home.root], {
      cwd: home.root,
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'ignore', stderr, 'ipc'],
    })
  } finally {
    closeSync(stderr)
  }
}

/**
 * Options of Node for the daemon (nodejs.org/api/cli.html). V8's default of 16 MB for young objects takes
 * 30 MB more in a burst and makes each fork of an agent slower; with 4 MB events are promoted too early and
 * each delivery costs a tenth more. The default of four V8 worker threads competes with the daemon for a
 * busy processor.
 */
export const nodeOptions: readonly string[] = [
  '--max-semi-space-size=8',
  '--v8-pool-size=1',
  // For the one collection of an idle daemon (`daemon/state.ts`).
  '--expose-gc',
]
