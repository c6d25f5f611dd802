import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { type Check, checksFor } from '../../../shared/api/checks.ts'
import type { Home } from '../../../shared/home/home.ts'
import { describeNetwork, networkWarnings } from '../../../shared/network/variables.ts'
import { checkLoginItems, daemonAutostart, trayAutostart } from '../../../shared/service/service.ts'
import { formatDuration } from '../../../shared/text.ts'
import { isAtLeast, packageFolder, version } from '../../../shared/version.ts'

const { ok, warning, error, skipped } = checksFor('system')

/** Checks the versions of doorward and Node. */
export const checkVersions = async (): Promise<Check[]> => {
  const text = await readFile(new URL('package.json', packageFolder), 'utf8')
  const { engines } = JSON.parse(text) as { engines?: { node?: string } }
  const needed = engines?.node ?? ''
  const { version: node, platform, arch } = process
  return [
    ok('doorward', `${version} on ${platform} ${arch}`),
    isAtLeast(node, needed)
      ? ok('node', node)
      : error('node', `${node} is too old: doorward needs ${needed}`, 'install a newer Node.js'),
  ]
}

/** Checks the proxies and certificates that requests to other machines use. No row without any. */
export const checkNetwork = (env: NodeJS.ProcessEnv): Check[] => {
  const faults = networkWarnings(env)
  if (faults.length > 0) return faults.map(({ detail, hint }) => error('network', detail, hint))
  const used = describeNetwork(env)
  return used === undefined ? [] : [ok('network', used)]
}

/** Signed timestamps of Stripe, Slack and Standard Webhooks may differ by this much. */
const toleranceMs = 300_000
const notableMs = 60_000

/**
 * Checks the clock: by a server that was asked, else by what the system says. `online` says that servers
 * were asked, also if none sent the time.
 */
export const checkClock = (
  aheadMs: number | undefined,
  isSynchronized: boolean | undefined,
  online: boolean,
): Check => {
  if (aheadMs !== undefined && Math.abs(aheadMs) > notableMs) {
    const fix = 'set the clock, on Linux by: sudo timedatectl set-ntp true'
    const off = `${formatDuration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'fast' : 'slow'}`
    return Math.abs(aheadMs) > toleranceMs
      ? error('clock', `it is ${off}: signed webhooks are refused`, fix)
      : warning('clock', `it is ${off}`, fix)
  }
  if (aheadMs !== undefined) return ok('clock', 'it agrees with a server that was asked')
  if (isSynchronized) return ok('clock', 'the system synchronizes it')
  const system = isSynchronized === false ? 'the system does not synchronize it' : 'not checked'
  return skipped(
    'clock',
    `${system}; ${online ? 'no server that was asked sent the time' : '--online compares it with servers'}`,
  )
}

/** Whether the system synchronizes the clock with the network; undefined if unknown. */
export const askTimedatectl = async (): Promise<boolean | undefined> => {
  if (process.platform !== 'linux') return undefined
  return new Promise((resolve) => {
    const args = ['show', '-p', 'NTPSynchronized', '--value']
    execFile('timedatectl', args, { timeout: 1000, killSignal: 'SIGKILL' }, (_, stdout) => {
      const said = stdout.trim()
      resolve(said === 'yes' ? true : said === 'no' ? false : undefined)
    })
  })
}

const atLogin = checksFor('autostart')

/** Checks whether the daemon starts at login, and whether the installed entry still works. */
export const checkAutostart = async (home: Home): Promise<Check[]> => {
  const [daemon, tray, problems] = await Promise.all([
    daemonAutostart(home).isOn(),
    trayAutostart(home).isOn(),
    checkLoginItems(home),
  ])
  if (problems.length > 0)
    return problems.map(({ code, detail, hint }) => {
      const isBroken = code === 'login-item-program-missing'
      return (isBroken ? atLogin.error : atLogin.warning)('at login', detail, hint)
    })
  if (!daemon && tray) return [atLogin.ok('tray', 'it starts at login, and starts the daemon')]
  if (!daemon)
    return [
      atLogin.skipped('daemon', 'it does not start at login; doorward daemon install changes that'),
    ]
  return [
    atLogin.ok('daemon', 'it starts at login'),
    ...(tray ? [atLogin.ok('tray', 'it starts at login')] : []),
  ]
}
