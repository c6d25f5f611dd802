import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, fchmodSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { ErrorCode } from '../errors.ts'
import type { Home } from '../home/home.ts'
import { daemonProgram, packageFolder } from '../version.ts'

/** Where the daemon's program lies. */
export const daemonMain = fileURLToPath(new URL(daemonProgram, packageFolder))

/** Where a daemon in the background leaves what it writes to standard error, newest start only. */
export const getStderrPath = (home: Home): string => join(home.logs, 'daemon.stderr')

/** The one message of a daemon to who has started it: where it listens, or why it does not. */
export type StartMessage = { readonly url: string } | { readonly code: ErrorCode }

/**
 * Starts the daemon as a process of its own that outlives this one. Its channel says when it listens, or
 * why it ends (`StartMessage`); who does not want it disconnects. Throws what the file system refuses.
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
 * What Node is told before the daemon (nodejs.org/api/cli.html). With V8's usual 16 MB for young objects a burst
 * takes some 30 MB more, and a fork copies the map of all memory at each start of an agent; with 4 or less
 * the events that are kept grow old before their time, and each delivery costs a tenth more. With Node's usual
 * four threads for what V8 does beside the program, four compete with it for a processor that is busy, and
 * those who wait for an answer wait longer.
 */
export const nodeOptions: readonly string[] = ['--max-semi-space-size=8', '--v8-pool-size=1']
