import { errorName } from '../../../shared/errors.ts'
import type { Config } from '../../../shared/config/load.ts'
import { enabledRules } from '../../../shared/config/webhook.ts'
import { fileTargetWarnings } from '../../../shared/targets/warnings.ts'
import { configureNetwork } from '../../../shared/network/outgoing.ts'
import { version } from '../../../shared/version.ts'
import type { Asker } from '../../context.ts'
import { type Check, checksFor, type Group, groups, within } from './check.ts'
import { checkAgents, collectAgents, reachAgents } from './checks/agents.ts'
import { checkAutostart, collectAutostart } from './checks/autostart.ts'
import { checkConfiguration, collectConfiguration } from './checks/configuration.ts'
import { checkDaemon, collectDaemon, collectLog } from './checks/daemon.ts'
import { checkHome, collectHome } from './checks/home.ts'
import { checkHooks, fetchHooks } from './checks/hooks.ts'
import { readDefaultAccounts } from '../../../shared/home/default-accounts.ts'
import { checkLogins, collectTokenFiles, neededLogins, reachProviders } from './checks/logins.ts'
import { checkMachines } from './checks/machines.ts'
import { checkPorts, collectPorts } from './checks/ports.ts'
import { checkSecrets } from './checks/secrets.ts'
import {
  checkClock,
  checkGit,
  checkNetwork,
  checkSystem,
  collectClock,
  collectGit,
  collectSystem,
} from './checks/system.ts'
import { checkTargets, collectFileTargets } from './checks/targets.ts'
import { checkTray, collectDesktop } from './checks/tray.ts'
import { askTunnel, checkTunnel, checkTunnelProgram } from './checks/tunnel.ts'
import type { Reachable } from './ask.ts'
import { reachTargets } from './checks/online-targets.ts'

/*
 * Collects the configuration and the daemon's state, then runs the checks of all groups in parallel, each
 * with a deadline. Changes and starts nothing. A group that fails does not stop the others.
 */

export type DoctorResult = {
  readonly checks: readonly Check[]
  readonly config: Config | undefined
}

export type DoctorContext = Asker & {
  readonly env: NodeJS.ProcessEnv
  /** Also asks targets, providers and the tunnel. */
  readonly online: boolean
}

const offlineMs = 5000
const onlineMs = 20_000

export const runChecks = async (context: DoctorContext): Promise<DoctorResult> => {
  const { home, env, online } = context
  const now = Date.now()
  const end = performance.now() + (online ? onlineMs : offlineMs)

  /** Runs the checks of one group; a failure or a timeout becomes a check of its own. */
  const group = async (name: Group, run: () => Promise<readonly Check[]>) => {
    const { error, skipped } = checksFor(name)
    try {
      const found = await within(Math.max(0, end - performance.now()), run())
      if (found !== 'late') return found.value
      // Reports a configuration that hangs only once.
      return name !== 'configuration' && (await settled(configuration)) === undefined
        ? [skipped(name, 'reading the configuration timed out')]
        : [error(name, 'the check timed out')]
    } catch (thrown) {
      return [error(name, `the check failed (${errorName(thrown)})`)]
    }
  }

  const configuration = collectConfiguration(home, env)
  const daemon = collectDaemon(context)
  const outside = online ? reach(configuration, daemon, home, now) : undefined
  // The groups that await them report a rejection; it may come before they do.
  for (const promise of [configuration, daemon, outside]) promise?.catch(() => undefined)

  const all = await Promise.all([
    group('system', async () => {
      const { file, isAlive } = await daemon
      const clock = await collectClock(isAlive ? file : undefined, now)
      const skewMs = (await outside)?.skewMs
      const { config, env: variables } = await configuration
      const needsGit = config ? enabledRules(config).some(({ workspace }) => workspace) : false
      return [
        ...checkSystem(await collectSystem()),
        ...checkGit(needsGit, needsGit ? await collectGit() : undefined),
        ...checkNetwork(variables),
        checkClock(clock, skewMs, online),
      ]
    }),
    group('home', async () => checkHome(await collectHome(home))),
    group('configuration', async () =>
      checkConfiguration(
        await configuration,
        (await collectHome(home)).exists,
        (await daemon).status?.problems ?? [],
      ),
    ),
    group('secrets', async () => checkSecrets(await configuration)),
    group('ports', async () => {
      const { config } = await configuration
      if (!config) return unreadable('ports')
      const { file, isAlive, unlistedPid } = await daemon
      const running = file ?? (unlistedPid === undefined ? undefined : { pid: unlistedPid })
      return checkPorts(await collectPorts(config.gateway), isAlive ? running : undefined)
    }),
    group('daemon', async () => {
      const [facts, log] = await Promise.all([daemon, collectLog(home, now)])
      return checkDaemon(facts, log, { version, now })
    }),
    group('machines', async () => {
      const { config } = await configuration
      return config ? checkMachines(config.gateway, (await daemon).status) : []
    }),
    group('agents', async () => {
      const { config, env: variables } = await configuration
      if (!config) return unreadable('agents')
      const seen = checkAgents(
        await collectAgents(config, variables, home.root),
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
      const files = await collectTokenFiles(home, now)
      const { status } = await daemon
      // `home` reports a file that cannot be used.
      const defaults = await readDefaultAccounts(home).catch(() => ({}))
      const seen = checkLogins(files, status, await configuration, new Date(now), defaults)
      return [...seen, ...((await outside)?.providers ?? [])]
    }),
    group('targets', async () => {
      const { config, env: variables } = await configuration
      if (!config) return unreadable('targets')
      const [files, fileWarnings] = await Promise.all([
        collectFileTargets(config, home),
        fileTargetWarnings(config, home.root),
      ])
      return checkTargets(config, variables, files, fileWarnings, (await outside)?.targets)
    }),
    group('tray', async () =>
      checkTray(await collectDesktop(home, env), (await configuration).config),
    ),
    group('autostart', async () => checkAutostart(await collectAutostart(home))),
    group('tunnel', async () => {
      const { config } = await configuration
      if (!config) return unreadable('tunnel')
      const { status } = await daemon
      const { tunnel, hooks = [] } = (await outside) ?? {}
      return [
        ...checkTunnelProgram(status),
        ...checkTunnel(config.gateway, tunnel, status !== undefined),
        ...checkHooks(hooks, status?.startedAt ?? ''),
      ]
    }),
  ])
  const [read, asked] = await Promise.all([settled(configuration), settled(daemon)])
  asked?.client?.close()
  const checks = all.flat().toSorted((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group))
  return { checks, config: read?.config }
}

/** The value of a promise that has already resolved. */
const settled = async <Value>(promise: Promise<Value>): Promise<Value | undefined> => {
  const result = await within(0, promise).catch(() => 'late' as const)
  return result === 'late' ? undefined : result.value
}

const unreadable = (group: Group): Check[] => [
  checksFor(group).skipped(group, 'the configuration cannot be read'),
]

type Outside = {
  readonly agents: readonly Check[]
  readonly providers: readonly Check[]
  readonly targets: readonly Check[]
  readonly tunnel: Awaited<ReturnType<typeof askTunnel>> | undefined
  readonly hooks: Awaited<ReturnType<typeof fetchHooks>>
  readonly skewMs: number | undefined
}

/** Asks all other services in parallel. Undefined without a configuration, which names them. */
const reach = async (
  configuration: ReturnType<typeof collectConfiguration>,
  daemon: ReturnType<typeof collectDaemon>,
  home: DoctorContext['home'],
  now: number,
): Promise<Outside | undefined> => {
  const [{ config, env }, { client }, files] = await Promise.all([
    configuration,
    daemon,
    collectTokenFiles(home, now),
  ])
  if (!config) return undefined
  configureNetwork(env)
  const { server, providers: entries } = config.gateway
  const names = new Set([
    ...files.map(({ provider }) => provider),
    ...neededLogins(config).map(({ provider }) => provider),
  ])
  const webhook = config.webhooks.find(({ enabled }) => enabled)?.urlPaths[0]
  const isConnected = config.webhooks.some(({ source }) => source)
  const [agents, providers, targets, tunnel, hooks] = await Promise.all([
    reachAgents(config, env),
    reachProviders([...names].sort(), entries),
    reachTargets({ config, env, client }),
    server.public_url !== undefined && client
      ? askTunnel(server.public_url, webhook)
      : Promise.resolve(undefined),
    isConnected && client ? fetchHooks(client) : Promise.resolve(undefined),
  ])
  const checksIn = (reached: readonly Reachable[]) => reached.map(({ check }) => check)
  return {
    agents,
    providers: checksIn(providers),
    targets: checksIn(targets),
    tunnel,
    hooks,
    skewMs: [...providers, ...targets].find(({ skewMs }) => skewMs !== undefined)?.skewMs,
  }
}
