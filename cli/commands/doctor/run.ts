import { errorName } from '../../../shared/errors.ts'
import type { Config } from '../../../shared/config/load.ts'
import { fileTargetWarnings } from '../../../shared/config/target-warnings.ts'
import { version } from '../../../shared/version.ts'
import type { Asker } from '../../context.ts'
import { type Check, checksFor, type Group, groups, within } from './check.ts'
import { judgeAgents, lookAtAgents } from './checks/agents.ts'
import { judgeAutostart, lookAtAutostart } from './checks/autostart.ts'
import { judgeConfiguration, lookAtConfiguration } from './checks/configuration.ts'
import { judgeDaemon, lookAtDaemon, lookAtLog } from './checks/daemon.ts'
import { judgeHome, lookAtHome } from './checks/home.ts'
import { judgeLogins, lookAtTokenFiles, neededLogins } from './checks/logins.ts'
import { judgePorts, lookAtPorts } from './checks/ports.ts'
import { judgeSecrets } from './checks/secrets.ts'
import { judgeClock, judgeSystem, lookAtClock, lookAtSystem } from './checks/system.ts'
import { judgeTargets, lookAtFileTargets } from './checks/targets.ts'
import { judgeTray, lookAtDesktop } from './checks/tray.ts'
import { askTunnel, judgeTunnel } from './checks/tunnel.ts'
import { reachAgents, reachProviders } from './checks/online-others.ts'
import { type Reached, reachTargets } from './checks/online-targets.ts'

/*
 * The story of an examination: look at the configuration and the daemon, then at everything else at once,
 * each within its limit; judge what was seen. Nothing is changed, and nothing is started. What took longer
 * than its limit may still go on afterwards.
 */

export type Examination = {
  readonly checks: readonly Check[]
  readonly config: Config | undefined
}

export type Patient = Asker & {
  readonly env: NodeJS.ProcessEnv
  /** Asks others too: targets, providers, the tunnel. */
  readonly online: boolean
}

const offlineMs = 5000
const onlineMs = 20_000

export const examine = async (patient: Patient): Promise<Examination> => {
  const { home, env, online } = patient
  const now = Date.now()
  const end = performance.now() + (online ? onlineMs : offlineMs)

  /** The checks of one group; what cannot be looked at, or takes too long, is a check of its own. */
  const group = async (name: Group, look: () => Promise<readonly Check[]>) => {
    const { error, skipped } = checksFor(name)
    try {
      const found = await within(Math.max(0, end - performance.now()), look())
      if (found !== 'late') return found.value
      // One thing that hangs is told of once.
      return name !== 'configuration' && (await settled(configuration)) === undefined
        ? [skipped(name, 'the configuration could not be read in time')]
        : [error(name, 'it could not be checked in time: something here hangs')]
    } catch (thrown) {
      return [error(name, `it could not be checked (${errorName(thrown)})`)]
    }
  }

  const configuration = lookAtConfiguration(home, env)
  const daemon = lookAtDaemon(patient)
  const outside = online ? reach(configuration, daemon, home, now) : undefined
  // Each group tells of it; none of them may be the first to look.
  for (const promise of [configuration, daemon, outside]) promise?.catch(() => undefined)

  const all = await Promise.all([
    group('system', async () => {
      const { file, isAlive } = await daemon
      const clock = await lookAtClock(home, isAlive ? file : undefined, now)
      const skewMs = (await outside)?.skewMs
      return [...judgeSystem(await lookAtSystem()), judgeClock(clock, now, skewMs, online)]
    }),
    group('home', async () => judgeHome(await lookAtHome(home))),
    group('configuration', async () =>
      judgeConfiguration(
        await configuration,
        (await lookAtHome(home)).exists,
        (await daemon).status?.problems ?? [],
      ),
    ),
    group('secrets', async () => judgeSecrets(await configuration)),
    group('ports', async () => {
      const { config } = await configuration
      if (!config) return unread('ports')
      const { file, isAlive, untold } = await daemon
      const running = file ?? (untold === undefined ? undefined : { pid: untold })
      return judgePorts(await lookAtPorts(config.gateway), isAlive ? running : undefined)
    }),
    group('daemon', async () => {
      const [facts, log] = await Promise.all([daemon, lookAtLog(home, now)])
      return judgeDaemon(facts, log, { version, now })
    }),
    group('agents', async () => {
      const { config, env: variables } = await configuration
      if (!config) return unread('agents')
      const seen = judgeAgents(
        await lookAtAgents(config, variables, home.root),
        config,
        (await daemon).status?.problems ?? [],
      )
      const reached = (await outside)?.agents ?? []
      const asked = new Set(reached.map(({ name }) => name))
      return [
        ...seen.filter(({ name, status }) => status === 'error' || !asked.has(name)),
        ...reached,
      ]
    }),
    group('logins', async () => {
      const files = await lookAtTokenFiles(home, now)
      const { status } = await daemon
      const seen = judgeLogins(files, status, await configuration, new Date(now))
      return [...seen, ...((await outside)?.providers ?? [])]
    }),
    group('targets', async () => {
      const { config, env: variables } = await configuration
      if (!config) return unread('targets')
      const [files, fileWarnings] = await Promise.all([
        lookAtFileTargets(config, home),
        fileTargetWarnings(config, home.root),
      ])
      return judgeTargets(config, variables, files, fileWarnings, (await outside)?.targets)
    }),
    group('tray', async () =>
      judgeTray(await lookAtDesktop(home, env), (await configuration).config),
    ),
    group('autostart', async () => judgeAutostart(await lookAtAutostart(home))),
    group('tunnel', async () => {
      const { config } = await configuration
      if (!config) return unread('tunnel')
      const isRunning = (await daemon).status !== undefined
      return judgeTunnel(config.gateway, (await outside)?.tunnel, isRunning)
    }),
  ])
  const [read, asked] = await Promise.all([settled(configuration), settled(daemon)])
  asked?.client?.close()
  const checks = all.flat().toSorted((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group))
  return { checks, config: read?.config }
}

/** What a promise came to, if it did by now. */
const settled = async <Value>(promise: Promise<Value>): Promise<Value | undefined> => {
  const result = await within(0, promise).catch(() => 'late' as const)
  return result === 'late' ? undefined : result.value
}

const unread = (group: Group): Check[] => [
  checksFor(group).skipped(group, 'the configuration cannot be read'),
]

type Outside = {
  readonly agents: readonly Check[]
  readonly providers: readonly Check[]
  readonly targets: readonly Check[]
  readonly tunnel: Awaited<ReturnType<typeof askTunnel>> | undefined
  readonly skewMs: number | undefined
}

/** All that is asked of others, at once. Undefined without a configuration that says whom to ask. */
const reach = async (
  configuration: ReturnType<typeof lookAtConfiguration>,
  daemon: ReturnType<typeof lookAtDaemon>,
  home: Patient['home'],
  now: number,
): Promise<Outside | undefined> => {
  const [{ config, env }, { client }, files] = await Promise.all([
    configuration,
    daemon,
    lookAtTokenFiles(home, now),
  ])
  if (!config) return undefined
  const { server, providers: entries } = config.gateway
  const names = new Set([
    ...files.map(({ provider }) => provider),
    ...neededLogins(config).map(({ provider }) => provider),
  ])
  const webhook = config.webhooks.find(({ enabled }) => enabled)?.urlPaths[0]
  const [agents, providers, targets, tunnel] = await Promise.all([
    reachAgents(config, env),
    reachProviders([...names].sort(), entries),
    reachTargets({ config, env, client }),
    server.public_url !== undefined && client
      ? askTunnel(server.public_url, webhook)
      : Promise.resolve(undefined),
  ])
  const checksIn = (reached: readonly Reached[]) => reached.map(({ check }) => check)
  return {
    agents,
    providers: checksIn(providers),
    targets: checksIn(targets),
    tunnel,
    skewMs: [...providers, ...targets].find(({ skewMs }) => skewMs !== undefined)?.skewMs,
  }
}
