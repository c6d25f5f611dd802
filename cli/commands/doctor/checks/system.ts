import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { DaemonFile } from '../../../../shared/api.ts'
import type { Home } from '../../../../shared/home/home.ts'
import { readStartTime } from '../../../../shared/home/lock.ts'
import { formatDuration } from '../../../../shared/text.ts'
import { packageFolder, version } from '../../../../shared/version.ts'
import { type Check, checksFor } from '../check.ts'

const { ok, warning, error, skipped } = checksFor('system')

type SystemFacts = {
  readonly version: string
  readonly node: string
  /** As package.json asks for it: `>=20.19`. */
  readonly engines: string
  readonly platform: string
  readonly arch: string
}

export const judgeSystem = ({ version, node, engines, platform, arch }: SystemFacts): Check[] => [
  ok('doorward', `${version} on ${platform} ${arch}`),
  isAtLeast(node, engines)
    ? ok('node', node)
    : error('node', `${node} is too old: doorward needs ${engines}`, 'install a newer Node.js'),
]

/** True where this version (`v20.20.2`) is not below that of `>=20.19`. */
export const isAtLeast = (version: string, range: string): boolean => {
  const parts = (text: string) => (/\d+(\.\d+)*/.exec(text)?.[0] ?? '0').split('.').map(Number)
  const [has, needs] = [parts(version), parts(range)]
  for (const [index, wanted] of needs.entries()) {
    const part = has[index] ?? 0
    if (part !== wanted) return part > wanted
  }
  return true
}

/** Senders that sign the time are refused when it is further off (Stripe, Slack, Standard Webhooks). */
const toleranceMs = 300_000
const notableMs = 60_000

/**
 * What can be said of the clock without asking another one: that it contradicts itself, or that the
 * system keeps it. `skewMs` is how far it is ahead of a server that was asked; `wasAsked` where none told.
 */
export const judgeClock = (
  { newest, movedMs, isSynchronized }: ClockFacts,
  now: number,
  skewMs: number | undefined,
  wasAsked = false,
): Check => {
  const mend = 'set the clock, on Linux by: sudo timedatectl set-ntp true'
  if (skewMs !== undefined && Math.abs(skewMs) > notableMs) {
    const off = `${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? 'fast' : 'slow'}`
    return Math.abs(skewMs) > toleranceMs
      ? error('clock', `it is ${off}: signed webhooks are refused`, mend)
      : warning('clock', `it is ${off}`, mend)
  }
  const behindMs = newest === undefined ? 0 : newest.at - now
  if (newest && behindMs > notableMs)
    return (behindMs > toleranceMs ? error : warning)(
      'clock',
      `${newest.what} was written ${formatDuration(behindMs)} in the future: the clock is slow, or was fast then`,
      mend,
    )
  if (movedMs !== undefined && Math.abs(movedMs) > toleranceMs)
    return warning(
      'clock',
      `it was moved by ${formatDuration(Math.abs(movedMs))} since the daemon started`,
      'doorward daemon restart, so that times in memory are right',
    )
  if (skewMs !== undefined) return ok('clock', 'as that of a server that was asked')
  if (isSynchronized) return ok('clock', 'the system keeps it by the network')
  const said = isSynchronized === false ? 'the system does not keep it by the network' : undefined
  return skipped(
    'clock',
    `${said ? `${said}; ` : ''}nothing here contradicts it; ${wasAsked ? 'no server that was asked told the time' : 'how exact it is, --online finds out'}`,
  )
}

export const lookAtSystem = async (): Promise<SystemFacts> => {
  const text = await readFile(new URL('package.json', packageFolder), 'utf8')
  const { engines } = JSON.parse(text) as { engines?: { node?: string } }
  return {
    version,
    node: process.version,
    engines: engines?.node ?? '',
    platform: process.platform,
    arch: process.arch,
  }
}

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
    const ticks = Number(readStartTime(pid))
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
