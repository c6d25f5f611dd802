import type { Warning } from '../config/warning.ts'
import { DoorwardError } from '../errors.ts'
import type { Home } from '../home/home.ts'
import {
  daemonItems,
  inspectItem,
  isLinked,
  type LoginItem,
  removeItem,
  serviceName,
  trayItem,
  writeItem,
} from './items.ts'
import { readServiceContext, runTool, type ServiceContext } from './platform.ts'
import { checkItem } from './problems.ts'
import { isEntryOn } from './units.ts'

/*
 * What starts at login: one file each for the daemon and the tray, in the form that the system wants.
 * systemd and launchd then also run the daemon, and start it again when it fails.
 */

type AtLogin = {
  readonly isOn: () => Promise<boolean>
  /**
   * Writes what is missing or differs; gives the paths that changed. Throws `login-item-foreign` when a
   * file of that name is not ours, `login-item-failed` when it cannot be written.
   */
  readonly turnOn: () => Promise<string[]>
  /** Removes what is ours; gives the paths. Nothing there is fine. */
  readonly turnOff: () => Promise<string[]>
}

/** The tray at login. Starts and ends no tray: it may be the one that asks. */
export const trayAutostart = (home: Home, around = readServiceContext): AtLogin => ({
  isOn: async () => isOn(trayItem(home, await around()), home),
  turnOn: async () => writeItem(trayItem(home, await around()), home),
  turnOff: async () => removeItem(trayItem(home, await around()), home),
})

/**
 * The daemon at login. `turnOn` does not start it now (see `serviceOf`); `turnOff` stops it when it is
 * the service manager that runs it, as nothing would watch over it any more.
 */
export const daemonAutostart = (home: Home, around = readServiceContext): AtLogin => ({
  isOn: async () => isOn(daemonItems(home, await around(), 0)[0], home),
  turnOn: async () => {
    const context = await around()
    const written: string[] = []
    for (const item of await listItems(home, context))
      written.push(...(await writeItem(item, home)))
    for (const item of otherItems(home, context)) await removeItem(item, home)
    if (written.length > 0) await (await findService(home, around))?.reload()
    return written
  },
  turnOff: async () => {
    const context = await around()
    const service = await findService(home, around)
    await service?.stop()
    const removed: string[] = []
    const items = [...daemonItems(home, context, 0), ...otherItems(home, context)]
    for (const item of items) removed.push(...(await removeItem(item, home)))
    await service?.reload()
    return removed
  },
})

/**
 * The service manager that is to run the daemon of this home: it is installed there, and answers. Else
 * undefined: then a daemon is started as a process of one's own.
 */
export const findService = async (
  home: Home,
  around = readServiceContext,
): Promise<Service | undefined> => {
  const service = await installedService(home, await around())
  return service && (await service.answers()) ? service : undefined
}

/** The same, whether or not it answers in this session. */
export const installedService = async (
  home: Home,
  context: ServiceContext,
): Promise<Service | undefined> => {
  const { platform, systemd } = context
  if (platform !== 'darwin' && systemd === undefined) return undefined
  const [item] = daemonItems(home, context, 0)
  if ((await inspectItem(item, home)).is !== 'ours') return undefined
  const name = serviceName(home, context)
  return platform === 'darwin' ? launchdService(name, item.path, context) : systemdService(name)
}

/**
 * What is wrong with what was installed, and the command that mends it; nothing when nothing was. Codes:
 * `login-item-program-missing`, `login-item-outdated`, `login-item-disabled`, `login-item-foreign`.
 */
export const checkLoginItems = async (
  home: Home,
  around = readServiceContext,
): Promise<Warning[]> => {
  const context = await around()
  const daemon = (await listItems(home, context)).map((item) => checkItem(item, home, 'daemon'))
  const tray = checkItem(trayItem(home, context), home, 'tray')
  return (await Promise.all([...daemon, tray])).flat()
}

const listItems = async (home: Home, context: ServiceContext) =>
  daemonItems(home, context, await readDrainTimeout(home))

/** On Linux: those of the other way, from before systemd was there, or after it went. */
const otherItems = (home: Home, context: ServiceContext): LoginItem[] =>
  context.platform === 'linux'
    ? daemonItems(home, { ...context, systemd: context.systemd === undefined ? 0 : undefined }, 0)
    : []

const isOn = async (item: LoginItem, home: Home): Promise<boolean> => {
  const found = await inspectItem(item, home)
  return found.is === 'ours' && isEntryOn(found.text) && (await isLinked(item))
}

/** What the configuration says, or the default where it cannot be read: a stop has time to spare. */
const readDrainTimeout = async (home: Home): Promise<number> => {
  try {
    // Loaded when used: the tray has no need of it.
    const [{ loadConfig }, { readEnvironment }] = await Promise.all([
      import('../config/load.ts'),
      import('../config/environment.ts'),
    ])
    const { gateway } = await loadConfig(home, await readEnvironment(home))
    return gateway.queue.drain_timeout
  } catch {
    return 30_000
  }
}

type ServiceState = {
  readonly is: 'running' | 'starting' | 'failed' | 'stopped'
  readonly pid?: number
  /** What the daemon ended with last. */
  readonly exitCode?: number
}

/** The daemon as the service manager of the system knows it. */
export type Service = {
  readonly kind: 'systemd' | 'launchd'
  /** The command that a person would start it with. */
  readonly startCommand: string
  /** False in a session that the manager does not serve, such as one of `su`. */
  readonly answers: () => Promise<boolean>
  /** Takes notice of files that were written or removed. */
  readonly reload: () => Promise<void>
  /** Returns when the process runs, which is before it listens. Throws `login-item-failed`. */
  readonly start: () => Promise<void>
  /** Returns when it has ended. */
  readonly stop: () => Promise<void>
  readonly state: () => Promise<ServiceState>
}

const refused = (what: string, said: string): DoorwardError =>
  new DoorwardError('login-item-failed', `${what} failed${said ? `: ${said}` : ''}`, {
    hint: 'doorward doctor',
  })

/** A user unit, by systemctl(1). */
const systemdService = (name: string): Service => {
  const systemctl = (args: readonly string[], timeoutMs?: number) =>
    runTool('systemctl', ['--user', '--no-ask-password', ...args], timeoutMs)
  return {
    kind: 'systemd',
    startCommand: `systemctl --user daemon-reload && systemctl --user start ${name}`,
    answers: async () => (await systemctl(['show', '--property=Version'])).code === 0,
    reload: async () => {
      await systemctl(['daemon-reload'])
    },
    start: async () => {
      // A person asks: what failed too often before does not count.
      await systemctl(['reset-failed', name])
      const { code, said } = await systemctl(['start', name], 60_000)
      if (code !== 0) throw refused(`systemctl --user start ${name}`, said)
    },
    stop: async () => {
      // It has a time limit of its own, which the unit says.
      await systemctl(['stop', name], 24 * 3_600_000)
      await systemctl(['reset-failed', name])
    },
    state: async () => {
      const properties = 'ActiveState,SubState,MainPID,ExecMainStatus'
      const { stdout } = await systemctl(['show', name, `--property=${properties}`])
      const valueOf = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(stdout)?.[1] ?? ''
      const exitCode = Number(valueOf('ExecMainStatus'))
      const pid = Number(valueOf('MainPID'))
      const active = valueOf('ActiveState')
      // Between two tries systemd calls it activating.
      if (active === 'failed' || valueOf('SubState').startsWith('auto-restart'))
        return { is: 'failed', exitCode }
      if (active === 'active') return { is: 'running', ...(pid > 0 ? { pid } : {}) }
      return { is: active === 'activating' || active === 'reloading' ? 'starting' : 'stopped' }
    },
  }
}

/** A launch agent of the person who is logged in, by launchctl(1). */
const launchdService = (label: string, path: string, { uid }: ServiceContext): Service => {
  const domain = `gui/${uid}`
  const target = `${domain}/${label}`
  const isLoaded = async () => (await runTool('launchctl', ['print', target])).code === 0
  const stop = async () => {
    // The job has a time limit of its own, ExitTimeOut.
    if (await isLoaded()) await runTool('launchctl', ['bootout', target], 24 * 3_600_000)
  }
  return {
    kind: 'launchd',
    startCommand: `launchctl bootstrap ${domain} '${path.replaceAll("'", `'\\''`)}'`,
    answers: async () => (await runTool('launchctl', ['print', domain])).code === 0,
    // What is loaded stays as it was read; a stop unloads it.
    reload: async () => undefined,
    start: async () => {
      await runTool('launchctl', ['enable', target])
      const args = (await isLoaded()) ? ['kickstart', target] : ['bootstrap', domain, path]
      const { code, said } = await runTool('launchctl', args, 60_000)
      if (code !== 0) throw refused(`launchctl ${args[0]} of ${label}`, said)
    },
    stop,
    state: async () => {
      const { code, stdout } = await runTool('launchctl', ['print', target])
      if (code !== 0) return { is: 'stopped' }
      const pid = Number(/^\s*pid = (\d+)$/m.exec(stdout)?.[1] ?? 0)
      if (pid > 0) return { is: 'running', pid }
      const exitCode = Number(/^\s*last exit code = (\d+)/m.exec(stdout)?.[1] ?? 0)
      if (exitCode > 0) return { is: 'failed', exitCode }
      return { is: /^\s*state = spawn/m.test(stdout) ? 'starting' : 'stopped' }
    },
  }
}
