import { duration } from '../../../shared/text.ts'
import { type Check, checksOf } from '../check.ts'
import type { ClockFacts } from '../look/clock.ts'

const { ok, warning, error, skipped } = checksOf('system')

export type SystemFacts = {
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
    const off = `${duration(Math.abs(skewMs))} ${skewMs > 0 ? 'fast' : 'slow'}`
    return Math.abs(skewMs) > toleranceMs
      ? error('clock', `it is ${off}: signed webhooks are refused`, mend)
      : warning('clock', `it is ${off}`, mend)
  }
  const behindMs = newest === undefined ? 0 : newest.at - now
  if (newest && behindMs > notableMs)
    return (behindMs > toleranceMs ? error : warning)(
      'clock',
      `${newest.what} was written ${duration(behindMs)} in the future: the clock is slow, or was fast then`,
      mend,
    )
  if (movedMs !== undefined && Math.abs(movedMs) > toleranceMs)
    return warning(
      'clock',
      `it was moved by ${duration(Math.abs(movedMs))} since the daemon started`,
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
