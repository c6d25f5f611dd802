import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile, readdir } from 'node:fs/promises'
import type { DaemonFile } from '../../../shared/api/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import { spawnDaemon, startDaemon } from './daemon.ts'

/** Where files have modes and owners. */
export const posix = process.platform !== 'win32'
/** What stands in `.env` for a webhook. */
export const secret = 'a-secret-that-nobody-may-see'

/** What a child says on standard error until it ends; it never shows the secret of `.env`. */
export const ended = async (
  child: ChildProcess,
): Promise<{ code: number | null; stderr: string }> => {
  let stderr = ''
  assert.ok(child.stderr)
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // Not its close: that never comes once its channel was disconnected.
  await Promise.all([once(child, 'exit'), once(child.stderr, 'end')])
  assert.equal(stderr.includes(secret), false)
  return { code: child.exitCode, stderr }
}

/** Starts a daemon that is to end by itself, and gives what it says. */
export const tried = async (home: Home, variables: Record<string, string> = {}) =>
  ended(spawnDaemon(home, variables))

/** What `run/daemon.json` says. */
export const daemonFile = async (home: Home) =>
  JSON.parse(await readFile(home.daemonJson, 'utf8')) as DaemonFile

/** A start works, and its stop leaves nothing in `run` but the token. */
export const startsAndStops = async (home: Home): Promise<void> => {
  const daemon = await startDaemon({ home })
  assert.equal((await daemonFile(home)).pid, daemon.process.pid)
  assert.equal(await daemon.stop(), 0)
  assert.deepEqual(await readdir(home.run), ['api.token'])
}

/** Nothing but the token is left in `run`. */
export const isClean = async (home: Home): Promise<void> =>
  assert.deepEqual(
    (await readdir(home.run)).filter((name) => name !== 'api.token'),
    [],
  )

/** A `.env` with it. */
export const withSecret = `HOOK_SECRET=${secret}\n`
