import { access } from 'node:fs/promises'
import { warn, type Warning } from '../config/warning.ts'
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
import { isEntryOn } from './units.ts'

/*
 * Starting at login: a file each for the daemon and the tray, in the format of the system. systemd and
 * launchd also run the daemon, and restart it when it fails.
 */

type Autostart = {
  readonly isOn: () => Promise<boolean>
  /**
   * Writes what is missing or differs. Returns the paths that changed. Throws `login-item-foreign` for a
   * file of that name that is not ours, `login-item-failed` when it cannot be written.
   */
  readonly turnOn: () => Promise<string[]>
  /** Removes our own files, if any. Returns their paths. */
  readonly turnOff: () => Promise<string[]>
}

/** The tray at login. Neither starts nor stops a tray: it may be the caller. */
export const trayAutostart = (home: Home, readContext = readServiceContext): Autostart => ({
  isOn: async () => isOn(trayItem(home, await readContext()), home),
  turnOn: async () => writeItem(trayItem(home, await readContext()), home),
  turnOff: async () => removeItem(trayItem(home, await readContext()), home),
})

/**
 * The daemon at login. `turnOn` does not start it now (see `findService`); `turnOff` stops a daemon that
 * the service manager runs, which would no longer restart it.
 */
export const daemonAutostart = (home: Home, readContext = readServiceContext): Autostart => ({
  isOn: async () => isOn(daemonItems(home, await readContext(), 0)[0], home),
  turnOn: async () => {
    const context = await readContext()
    const written: string[] = []
    for (const item of await listItems(home, context))
      written.push(...(await writeItem(item, home)))
    for (const item of obsoleteItems(home, context)) await removeItem(item, home)
    if (written.length > 0) await (await findService(home, readContext))?.reload()
    return written
  },
  turnOff: async () => {
    const context = await readContext()
    const service = await findService(home, readContext)
    await service?.stop()
    const removed: string[] = []
    const items = [...daemonItems(home, context, 0), ...obsoleteItems(home, context)]
    for (const item of items) removed.push(...(await removeItem(item, home)))
    await service?.reload()
    return removed
  },
})

/**
 * The service of this home's daemon, if it is installed and its manager answers. Otherwise the caller
 * starts the daemon as a process.
 */
export const findService = async (
  home: Home,
  readContext = readServiceContext,
): Promise<Service | undefined> => {
  const service = await installedService(home, await readContext())
  return service && (await service.answers()) ? service : undefined
}

/** The same, whether or not the manager answers in this session. */
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
 * The problems of installed files, with the command that fixes them. Codes: `login-item-program-missing`,
 * `login-item-disabled`, `login-item-foreign`.
 */
export const checkLoginItems = async (
  home: Home,
  readContext = readServiceContext,
): Promise<Warning[]> => {
  const context = await readContext()
  const daemon = (await listItems(home, context)).map((item) => checkItem(item, home, 'daemon'))
  const tray = checkItem(trayItem(home, context), home, 'tray')
  return (await Promise.all([...daemon, tray])).flat()
}

/** The problem of one file; none when it does not exist. */
const checkItem = async (
  item: LoginItem,
  home: Home,
  what: 'daemon' | 'tray',
): Promise<Warning[]> => {
  const fix = `doorward daemon install${what === 'tray' ? ' --tray' : ''}`
  const found = await inspectItem(item, home)
  if (found.is === 'missing') return []
  if (found.is === 'foreign')
    return warn(
      'login-item-foreign',
      `${item.path} ${found.why}: it does not start the ${what} at login`,
      `move it away, then run: ${fix}`,
    )
  const { node, program } = found.marker
  const missing: string[] = []
  for (const path of [node, program]) if (!(await exists(path))) missing.push(path)
  if (missing.length > 0)
    return warn(
      'login-item-program-missing',
      `the ${what} does not start at login: ${item.path} runs ${missing.join(' and ')}, which no longer ${missing.length === 1 ? 'exists' : 'exist'}`,
      fix,
    )
  if (isEntryOn(found.text) && (await isLinked(item))) return []
  return warn(
    'login-item-disabled',
    `the ${what} does not start at login: ${item.path} is switched off`,
    `${fix}, or doorward daemon uninstall${what === 'tray' ? ' --tray' : ''}`,
  )
}

const exists = async (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

const listItems = async (home: Home, context: ServiceContext) =>
  daemonItems(home, context, await readDrainTimeout(home))

/** On Linux: the items for a machine with systemd, if this has none, and the other way round. */
const obsoleteItems = (home: Home, context: ServiceContext): LoginItem[] =>
  context.platform === 'linux'
    ? daemonItems(home, { ...context, systemd: context.systemd === undefined ? 0 : undefined }, 0)
    : []

const isOn = async (item: LoginItem, home: Home): Promise<boolean> => {
  const found = await inspectItem(item, home)
  return found.is === 'ours' && isEntryOn(found.text) && (await isLinked(item))
}

/** The configured value, or the default when the configuration cannot be read. */
const readDrainTimeout = async (home: Home): Promise<number> => {
  try {
    // Loaded lazily: the tray does not need it.
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
  /** The last exit code of the daemon. */
  readonly exitCode?: number
}

/** The daemon as a service of systemd or launchd. */
export type Service = {
  readonly kind: 'systemd' | 'launchd'
  /** The command to start it by hand. */
  readonly startCommand: string
  /** False in a session without the manager, such as one of `su`. */
  readonly answers: () => Promise<boolean>
  /** Reads files that were written or removed. */
  readonly reload: () => Promise<void>
  /** Resolves when the process runs, before it listens. Throws `login-item-failed`. */
  readonly start: () => Promise<void>
  /** Resolves when it has exited. */
  readonly stop: () => Promise<void>
  readonly state: () => Promise<ServiceState>
}

const toFailure = (what: string, errorText: string): DoorwardError =>
  new DoorwardError('login-item-failed', `${what} failed${errorText ? `: ${errorText}` : ''}`, {
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
      // The user asks for it: earlier failures no longer count.
      await systemctl(['reset-failed', name])
      const { code, errorText } = await systemctl(['start', name], 60_000)
      if (code !== 0) throw toFailure(`systemctl --user start ${name}`, errorText)
    },
    stop: async () => {
      // The unit has its own time limit.
      await systemctl(['stop', name], 24 * 3_600_000)
      await systemctl(['reset-failed', name])
    },
    state: async () => {
      const properties = 'ActiveState,SubState,MainPID,ExecMainStatus'
      const { stdout } = await systemctl(['show', name, `--property=${properties}`])
      const getValue = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(stdout)?.[1] ?? ''
      const exitCode = Number(getValue('ExecMainStatus'))
      const pid = Number(getValue('MainPID'))
      const active = getValue('ActiveState')
      // Between two attempts systemd reports it as activating.
      if (active === 'failed' || getValue('SubState').startsWith('auto-restart'))
        return { is: 'failed', exitCode }
      if (active === 'active') return { is: 'running', ...(pid > 0 ? { pid } : {}) }
      return { is: active === 'activating' || active === 'reloading' ? 'starting' : 'stopped' }
    },
  }
}

/** A launch agent of the logged-in user, by launchctl(1). */
const launchdService = (label: string, path: string, { uid }: ServiceContext): Service => {
  const domain = `gui/${uid}`
  const target = `${domain}/${label}`
  const isLoaded = async () => (await runTool('launchctl', ['print', target])).code === 0
  const stop = async () => {
    // The job has its own time limit, ExitTimeOut.
    if (await isLoaded()) await runTool('launchctl', ['bootout', target], 24 * 3_600_000)
  }
  return {
    kind: 'launchd',
    startCommand: `launchctl bootstrap ${domain} '${path.replaceAll("'", `'\\''`)}'`,
    answers: async () => (await runTool('launchctl', ['print', domain])).code === 0,
    // A loaded job does not change until a stop unloads it.
    reload: async () => undefined,
    start: async () => {
      await runTool('launchctl', ['enable', target])
      const args = (await isLoaded()) ? ['kickstart', target] : ['bootstrap', domain, path]
      const { code, errorText } = await runTool('launchctl', args, 60_000)
      if (code !== 0) throw toFailure(`launchctl ${args[0]} of ${label}`, errorText)
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
