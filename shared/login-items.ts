import type { Warning } from './warning.ts'
import type { Home } from './home.ts'
import { isEntryOn } from './login-items/desktop-entry.ts'
import { inspectItem, isLinked, removeItem, writeItem } from './login-items/item-file.ts'
import { type LoginItem, daemonItems, serviceName, trayItem } from './login-items/items.ts'
import { problemsOfItem } from './login-items/problems.ts'
import { type Service, launchdService, systemdService } from './login-items/service.ts'
import { type Surroundings, ownSurroundings } from './login-items/surroundings.ts'

/*
 * What starts at login: one file each for the daemon and the tray, in the form that the system wants.
 * systemd and launchd then also run the daemon, and start it again when it fails.
 */

export type AtLogin = {
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
export const trayAtLogin = (home: Home, around = ownSurroundings): AtLogin => ({
  isOn: async () => isOn(trayItem(home, await around()), home),
  turnOn: async () => writeItem(trayItem(home, await around()), home),
  turnOff: async () => removeItem(trayItem(home, await around()), home),
})

/**
 * The daemon at login. `turnOn` does not start it now (see `serviceOf`); `turnOff` stops it when it is
 * the service manager that runs it, as nothing would watch over it any more.
 */
export const daemonAtLogin = (home: Home, around = ownSurroundings): AtLogin => ({
  isOn: async () => isOn(daemonItems(home, await around(), 0)[0], home),
  turnOn: async () => {
    const surroundings = await around()
    const written: string[] = []
    for (const item of await itemsOf(home, surroundings))
      written.push(...(await writeItem(item, home)))
    for (const item of otherItems(home, surroundings)) await removeItem(item, home)
    if (written.length > 0) await (await serviceOf(home, around))?.reload()
    return written
  },
  turnOff: async () => {
    const surroundings = await around()
    const service = await serviceOf(home, around)
    await service?.stop()
    const removed: string[] = []
    const items = [...daemonItems(home, surroundings, 0), ...otherItems(home, surroundings)]
    for (const item of items) removed.push(...(await removeItem(item, home)))
    await service?.reload()
    return removed
  },
})

/**
 * The service manager that is to run the daemon of this home: it is installed there, and answers. Else
 * undefined: then a daemon is started as a process of one's own.
 */
export const serviceOf = async (
  home: Home,
  around = ownSurroundings,
): Promise<Service | undefined> => {
  const service = await installedService(home, await around())
  return service && (await service.answers()) ? service : undefined
}

/** The same, whether or not it answers in this session. */
export const installedService = async (
  home: Home,
  surroundings: Surroundings,
): Promise<Service | undefined> => {
  const { platform, systemd } = surroundings
  if (platform !== 'darwin' && systemd === undefined) return undefined
  const [item] = daemonItems(home, surroundings, 0)
  if ((await inspectItem(item, home)).is !== 'ours') return undefined
  const name = serviceName(home, surroundings)
  return platform === 'darwin'
    ? launchdService(name, item.path, surroundings)
    : systemdService(name)
}

/**
 * What is wrong with what was installed, and the command that mends it; nothing when nothing was. Codes:
 * `login-item-program-missing`, `login-item-outdated`, `login-item-disabled`, `login-item-foreign`.
 */
export const loginItemProblems = async (
  home: Home,
  around = ownSurroundings,
): Promise<Warning[]> => {
  const surroundings = await around()
  const daemon = (await itemsOf(home, surroundings)).map((item) =>
    problemsOfItem(item, home, 'daemon'),
  )
  const tray = problemsOfItem(trayItem(home, surroundings), home, 'tray')
  return (await Promise.all([...daemon, tray])).flat()
}

const itemsOf = async (home: Home, surroundings: Surroundings) =>
  daemonItems(home, surroundings, await drainTimeoutOf(home))

/** On Linux: those of the other way, from before systemd was there, or after it went. */
const otherItems = (home: Home, surroundings: Surroundings): LoginItem[] =>
  surroundings.platform === 'linux'
    ? daemonItems(
        home,
        { ...surroundings, systemd: surroundings.systemd === undefined ? 0 : undefined },
        0,
      )
    : []

const isOn = async (item: LoginItem, home: Home): Promise<boolean> => {
  const found = await inspectItem(item, home)
  return found.is === 'ours' && isEntryOn(found.text) && (await isLinked(item))
}

/** What the configuration says, or the default where it cannot be read: a stop has time to spare. */
const drainTimeoutOf = async (home: Home): Promise<number> => {
  try {
    // Loaded when used: the tray has no need of it.
    const [{ loadConfig }, { readEnvironment }] = await Promise.all([
      import('./load-config.ts'),
      import('./environment.ts'),
    ])
    const { gateway } = await loadConfig(home, await readEnvironment(home))
    return gateway.queue.drain_timeout
  } catch {
    return 30_000
  }
}
