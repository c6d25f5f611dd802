import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { DaemonFile } from '../../../shared/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import { startOf } from '../../../shared/home/lock.ts'

export type ClockFacts = {
  /** The file of the newest time that was found, and that time in milliseconds since 1970. */
  readonly newest: { readonly what: string; readonly at: number } | undefined
  /** How far the clock was moved since the daemon started, where the system tells. */
  readonly movedMs: number | undefined
  /** Whether the system keeps the clock by the network; undefined where it does not say. */
  readonly isSynchronized: boolean | undefined
}

/** Touched by systemd-timesyncd whenever it has set the clock, and now and then (systemd-timesyncd(8)). */
const timesyncClock = '/var/lib/systemd/timesync/clock'

/** What this machine knows of its own clock without asking any other. */
export const lookAtClock = async (
  home: Home,
  daemon: DaemonFile | undefined,
  now: number,
): Promise<ClockFacts> => ({
  newest: await newestFile(home),
  movedMs: daemon === undefined ? undefined : movedSince(daemon, now),
  isSynchronized: await askTimedatectl(),
})

const newestFile = async (home: Home): Promise<ClockFacts['newest']> => {
  const folders = [home.run, home.tokens, home.clients, home.logs, home.config]
  const names = await Promise.all(
    folders.map(async (folder) =>
      (await readdir(folder).catch(() => [])).map((name) => join(folder, name)),
    ),
  )
  const times = await Promise.all(
    [...names.flat(), timesyncClock].map(async (path) => {
      const found = await stat(path).catch(() => undefined)
      return found ? [{ what: basename(path), at: found.mtimeMs }] : []
    }),
  )
  return times.flat().toSorted((a, b) => b.at - a.at)[0]
}

/**
 * The daemon wrote down when it started, and the kernel counts how long it runs whatever the clock does
 * (proc(5): field 22 of stat in ticks of 10 ms since boot).
 */
const movedSince = ({ pid, startedAt }: DaemonFile, now: number): number | undefined => {
  try {
    const ticks = Number(startOf(pid))
    const [uptime = ''] = readFileSync('/proc/uptime', 'utf8').split(' ')
    const runsMs = Number(uptime) * 1000 - ticks * 10
    const moved = now - runsMs - Date.parse(startedAt)
    return Number.isFinite(moved) ? moved : undefined
  } catch {
    return undefined
  }
}

const askTimedatectl = async (): Promise<boolean | undefined> => {
  if (process.platform !== 'linux') return undefined
  return new Promise((resolve) => {
    const args = ['show', '-p', 'NTPSynchronized', '--value']
    execFile('timedatectl', args, { timeout: 1000, killSignal: 'SIGKILL' }, (_, stdout) => {
      const said = stdout.trim()
      resolve(said === 'yes' ? true : said === 'no' ? false : undefined)
    })
  })
}
