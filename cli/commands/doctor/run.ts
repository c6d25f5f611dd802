import type { Status } from '../../../shared/api/api.ts'
import {
  type Check,
  checkGroups,
  checkLimitMs,
  runGroup,
  within,
} from '../../../shared/api/checks.ts'
import type { Config } from '../../../shared/config/load.ts'
import type { Asker } from '../../context.ts'
import { checkConfiguration, collectConfiguration } from './configuration.ts'
import { askChecks, checkDaemon, collectDaemon } from './daemon.ts'
import { checkHome } from './home.ts'
import { checkPorts, collectPorts } from './ports.ts'
import { checkSecrets } from './secrets.ts'
import {
  askTimedatectl,
  checkAutostart,
  checkClock,
  checkNetwork,
  checkVersions,
} from './system.ts'
import { checkTray, collectDesktop } from './tray.ts'

/*
 * Checks what can be seen without a daemon, or concerns this machine, and asks the daemon for the rest.
 * Changes and starts nothing. A group that fails or hangs does not stop the others.
 */

export type DoctorResult = {
  readonly checks: readonly Check[]
  readonly config: Config | undefined
  /** The daemon may use another configuration than the files have now. */
  readonly status: Status | undefined
}

export type DoctorContext = Asker & {
  readonly env: NodeJS.ProcessEnv
  /** The daemon also asks targets, providers and the tunnel. */
  readonly online: boolean
}

export const runChecks = async (context: DoctorContext): Promise<DoctorResult> => {
  const { home, env, online } = context
  const configuration = collectConfiguration(home, env)
  const daemon = collectDaemon(context)
  const answer = ask(configuration, daemon, online)
  // The groups that await them report a rejection; it may come before they do.
  for (const promise of [configuration, daemon, answer]) promise.catch(() => undefined)
  const limitMs = checkLimitMs(online) + 4000
  const run = async (group: Check['group'], check: () => Promise<readonly Check[]>) =>
    runGroup(group, limitMs, check)
  const all = await Promise.all([
    run('system', async () => [
      ...(await checkVersions()),
      ...checkNetwork((await configuration).env),
      checkClock((await answer).clockAheadMs, await askTimedatectl(), online),
    ]),
    run('home', async () => checkHome(home)),
    run('configuration', async () => checkConfiguration(await configuration, home)),
    run('secrets', async () => checkSecrets(await configuration)),
    run('ports', async () => {
      const { config } = await configuration
      return checkPorts(config && (await collectPorts(config.gateway)), await daemon)
    }),
    run('daemon', async () => checkDaemon(await daemon, home)),
    run('agents', async () => (await answer).checks),
    run('tray', async () =>
      checkTray(await collectDesktop(home, env), (await configuration).config),
    ),
    run('autostart', async () => checkAutostart(home)),
  ])
  const order = (check: Check) => checkGroups.indexOf(check.group)
  return {
    checks: all.flat().toSorted((a, b) => order(a) - order(b)),
    config: (await settled(configuration))?.config,
    status: (await settled(daemon))?.status,
  }
}

/** Undefined for a promise that was rejected, or hangs. */
const settled = async <Value>(promise: Promise<Value>): Promise<Value | undefined> => {
  const found = await within(0, promise).catch(() => 'late' as const)
  return found === 'late' ? undefined : found.value
}

const ask = async (
  configuration: ReturnType<typeof collectConfiguration>,
  daemon: ReturnType<typeof collectDaemon>,
  online: boolean,
): Promise<ReturnType<typeof askChecks>> => {
  const facts = await daemon
  try {
    return await askChecks(facts, (await configuration).config?.gateway.queue, online)
  } finally {
    facts.client?.close()
  }
}
