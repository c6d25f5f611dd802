import { open, readFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { DaemonFile, Status } from '../../../shared/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { readDaemonFile } from '../../../shared/client/discovery.ts'
import { DoorwardError, nameOf, systemCode } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { holderOf, isAlive } from '../../../shared/home/lock.ts'
import { stderrOf } from '../../../shared/client/spawn.ts'
import type { Asker } from '../../context.ts'
import { findDaemon } from '../../find-daemon.ts'
import { within } from '../within.ts'

export type DaemonFacts = {
  /** `run/daemon.json`, which a daemon that was killed leaves behind. */
  readonly file: DaemonFile | undefined
  readonly isAlive: boolean
  /** The process that has locked the home, where the file is missing. */
  readonly untold?: number
  /** There while it answers. */
  readonly client?: Client
  readonly status?: Status
  readonly answeredMs?: number
  /** Why it does not answer. */
  readonly failure?: { readonly code: string; readonly detail: string; readonly hint?: string }
}

const answerMs = 2000

/** Asks the daemon of a home how it is; starts none. The caller closes the client. */
export const lookAtDaemon = async (asker: Asker): Promise<DaemonFacts> => {
  const file = await readDaemonFile(asker.home).catch(() => undefined)
  const untold = file ? undefined : await holderOf(asker.home, 'daemon')
  const facts = {
    file,
    isAlive: file ? isAlive(file.pid) : untold !== undefined,
    ...(untold !== undefined && { untold }),
  }
  const start = performance.now()
  try {
    const connected = await within(answerMs, findDaemon(asker))
    if (connected === 'late') return { ...facts, failure: late }
    const client = connected.value
    const signal = AbortSignal.timeout(answerMs)
    const status = await client.get<Status>('/status', { signal }).catch((error: unknown) => {
      client.close()
      throw error
    })
    return { ...facts, file: client.daemon, client, status, answeredMs: performance.now() - start }
  } catch (error) {
    return { ...facts, failure: failureOf(error) }
  }
}

const late = {
  code: 'late',
  detail: `it did not answer within ${answerMs / 1000} s`,
  hint: 'doorward daemon restart',
}

const failureOf = (error: unknown): NonNullable<DaemonFacts['failure']> => {
  if (!(error instanceof DoorwardError)) return { code: 'internal', detail: nameOf(error) }
  const { code, message, hint } = error
  if (code === 'interrupted') return late
  return { code, detail: message, ...(hint === undefined ? {} : { hint }) }
}

export type LogFacts = {
  /** Of all files in `logs/`, in bytes. */
  readonly bytes: number
  /** Starts and ends that the log of the last day tells of. */
  readonly starts: number
  readonly ends: number
  /** What the daemon that was started in the background last left on standard error. */
  readonly lastWords: string
}

const tailBytes = 512 * 1024
const dayMs = 86_400_000

/** Looks at the daemon's log as a whole, never at what single lines say. */
export const lookAtLog = async (home: Home, now: number): Promise<LogFacts> => {
  const names = await readdir(home.logs).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  })
  const sizes = await Promise.all(
    names.map(async (name) =>
      stat(join(home.logs, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  )
  const messages = messagesSince(await tailOf(home.log), now - dayMs)
  const of = (...wanted: string[]) => messages.filter((text) => wanted.includes(text)).length
  return {
    bytes: sizes.reduce((sum, size) => sum + size, 0),
    starts: of('listening'),
    // One that hands over to its successor is finished, not stopped.
    ends: of('stopped', 'finished'),
    lastWords: (await readFile(stderrOf(home), 'utf8').catch(() => '')).slice(0, 64 * 1024),
  }
}

const tailOf = async (path: string): Promise<string> => {
  const file = await open(path).catch(() => undefined)
  if (!file) return ''
  try {
    const { size } = await file.stat()
    const length = Math.min(size, tailBytes)
    const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length)
    return buffer.toString('utf8')
  } finally {
    await file.close()
  }
}

const messagesSince = (text: string, since: number): string[] =>
  text.split('\n').flatMap((line) => {
    try {
      const { time, msg } = JSON.parse(line) as { time?: unknown; msg?: unknown }
      if (typeof time !== 'string' || typeof msg !== 'string') return []
      return Date.parse(time) >= since ? [msg] : []
    } catch {
      return []
    }
  })
