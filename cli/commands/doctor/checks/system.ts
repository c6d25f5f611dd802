import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { DaemonFile } from '../../../../shared/api.ts'
import { readStartTime } from '../../../../shared/home/lock.ts'
import { describeNetwork } from '../../../../shared/network/variables.ts'
import { networkWarnings } from '../../../../shared/network/warnings.ts'
import { formatDuration } from '../../../../shared/text.ts'
import { oldestGit } from '../../../../shared/config/workspace.ts'
import { packageFolder, version } from '../../../../shared/version.ts'
import { type Check, checksFor } from '../check.ts'

const { ok, warning, error, skipped } = checksFor('system')

type SystemFacts = {
  readonly version: string
  readonly node: string
  /** As in package.json: `>=20.19`. */
  readonly engines: string
  readonly platform: string
  readonly arch: string
}

export const checkSystem = ({ version, node, engines, platform, arch }: SystemFacts): Check[] => [
  ok('doorward', `${version} on ${platform} ${arch}`),
  isAtLeast(node, engines)
    ? ok('node', node)
    : error('node', `${node} is too old: doorward needs ${engines}`, 'install a newer Node.js'),
]

/** True if a version (`v20.20.2`) is within a range (`>=20.19`). */
export const isAtLeast = (version: string, range: string): boolean => {
  const parts = (text: string) => (/\d+(\.\d+)*/.exec(text)?.[0] ?? '0').split('.').map(Number)
  const [has, needs] = [parts(version), parts(range)]
  for (const [index, wanted] of needs.entries()) {
    const part = has[index] ?? 0
    if (part !== wanted) return part > wanted
  }
  return true
}

/** Checks the proxies and certificates that requests to other machines use. No row without any. */
export const checkNetwork = (env: NodeJS.ProcessEnv): Check[] => {
  const faults = networkWarnings(env)
  if (faults.length > 0) return faults.map(({ detail, hint }) => error('network', detail, hint))
  const used = describeNetwork(env)
  return used === undefined ? [] : [ok('network', used)]
}

/** Checks git where a rule has a workspace; `found` is its version. */
export const checkGit = (isNeeded: boolean, found: string | undefined): Check[] => {
  if (!isNeeded) return []
  const fix = `install git ${oldestGit} or newer`
  if (found === undefined) return [error('git', 'a rule has a workspace, and there is no git', fix)]
  return isAtLeast(found, oldestGit)
    ? [ok('git', found)]
    : [error('git', `${found} is too old for a workspace`, fix)]
}

/** Its version, by the `PATH` of this terminal. */
export const collectGit = async (): Promise<string | undefined> =>
  new Promise((resolve) => {
    execFile('git', ['version'], { timeout: 2000, killSignal: 'SIGKILL' }, (failure, stdout) =>
      resolve(failure ? undefined : /\d+(\.\d+)+/.exec(stdout)?.[0]),
    )
  })

/** Signed timestamps of Stripe, Slack and Standard Webhooks may differ by this much. */
const toleranceMs = 300_000
const notableMs = 60_000

/**
 * Checks the clock. `skewMs` is how far it is ahead of a server that was asked; `wasAsked` says that
 * servers were asked, also if none sent the time.
 */
export const checkClock = (
  { movedMs, isSynchronized }: ClockFacts,
  skewMs: number | undefined,
  wasAsked = false,
): Check => {
  const fix = 'set the clock, on Linux by: sudo timedatectl set-ntp true'
  if (skewMs !== undefined && Math.abs(skewMs) > notableMs) {
    const off = `${formatDuration(Math.abs(skewMs))} ${skewMs > 0 ? 'fast' : 'slow'}`
    return Math.abs(skewMs) > toleranceMs
      ? error('clock', `it is ${off}: signed webhooks are refused`, fix)
      : warning('clock', `it is ${off}`, fix)
  }
  if (movedMs !== undefined && Math.abs(movedMs) > toleranceMs)
    return warning(
      'clock',
      `it was changed by ${formatDuration(Math.abs(movedMs))} since the daemon started`,
      'doorward daemon restart, to correct the times in memory',
    )
  if (skewMs !== undefined) return ok('clock', 'it agrees with a server that was asked')
  if (isSynchronized) return ok('clock', 'the system synchronizes it')
  const system = isSynchronized === false ? 'the system does not synchronize it' : 'not checked'
  return skipped(
    'clock',
    `${system}; ${wasAsked ? 'no server that was asked sent the time' : '--online compares it with servers'}`,
  )
}

export const collectSystem = async (): Promise<SystemFacts> => {
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
  /** By how much the clock was changed since the daemon started; undefined if unknown. */
  readonly movedMs: number | undefined
  /** Whether the system synchronizes the clock with the network; undefined if unknown. */
  readonly isSynchronized: boolean | undefined
}

/** Collects what this machine knows of its clock, without the network. */
export const collectClock = async (
  daemon: DaemonFile | undefined,
  now: number,
): Promise<ClockFacts> => ({
  movedMs: daemon && measureClockChange(daemon, now),
  isSynchronized: await askTimedatectl(),
})

/**
 * Compares the daemon's recorded start with its age, which the kernel counts without the clock (proc(5):
 * field 22 of stat, in ticks of 10 ms since boot).
 */
const measureClockChange = ({ pid, startedAt }: DaemonFile, now: number): number | undefined => {
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
