import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { findProgram } from '../../../shared/agents/detect.ts'
import type { Config } from '../../../shared/config/load.ts'
import type { Home } from '../../../shared/home/home.ts'
import { isAlive } from '../../../shared/home/lock.ts'
import { gnomeExtensionHint, hasXTray, isGnomeSession } from '../../../shared/panels.ts'
import { systrayPrograms } from '../../../shared/runtime.ts'
import { type Check, checksFor } from '../../../shared/api/checks.ts'

type DesktopFacts = {
  readonly platform: NodeJS.Platform
  readonly arch: string
  /** The packaged tray program, by its checksum; `none` for this system. */
  readonly program: 'good' | 'changed' | 'missing' | 'none'
  /** The pid of the tray of this home, if it runs. */
  readonly pid: number | undefined
  /** Linux only from here on. */
  readonly hasDisplay: boolean
  readonly hasBus: boolean
  /** Undefined if the session bus cannot be asked. */
  readonly hasHost: boolean | undefined
  /** An older panel, which only the packaged program can use; undefined if the X server does not answer. */
  readonly hasXHost: boolean | undefined
  readonly isGnome: boolean
  readonly hasNotifications: boolean | undefined
  readonly hasLibrary: boolean
}

/** Collects what the tray needs of this machine and this session. */
export const collectDesktop = async (home: Home, env: NodeJS.ProcessEnv): Promise<DesktopFacts> => {
  const address = findBusAddress(env)
  const [program, pid, hasPanel, hasXHost, hasNotifications] = await Promise.all([
    collectProgram(),
    readTrayPid(home),
    address === undefined ? undefined : hasHost(address, env),
    process.platform === 'linux' ? hasXTray(env) : undefined,
    address === undefined ? undefined : canStart('org.freedesktop.Notifications', address, env),
  ])
  return {
    platform: process.platform,
    arch: process.arch,
    program,
    pid,
    hasDisplay: Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY']),
    hasBus: address !== undefined,
    hasHost: hasPanel,
    hasXHost,
    isGnome: isGnomeSession(env),
    hasNotifications,
    hasLibrary: process.platform !== 'linux' || (await hasLibrary()),
  }
}

const collectProgram = async (): Promise<DesktopFacts['program']> => {
  const [name, sha256] = systrayPrograms[process.platform] ?? []
  if (name === undefined) return 'none'
  try {
    const systray = dirname(createRequire(import.meta.url).resolve('systray2'))
    const hash = createHash('sha256')
    await pipeline(createReadStream(join(systray, 'traybin', name)), hash)
    return hash.digest('hex') === sha256 ? 'good' : 'changed'
  } catch {
    return 'missing'
  }
}

/** The pid of the tray of this home, if it runs. */
export const readTrayPid = async (home: Home): Promise<number | undefined> => {
  const lock = await readFile(join(home.run, 'tray.lock'), 'utf8').catch(() => '')
  const pid = Number.parseInt(lock, 10)
  return pid > 0 && isAlive(pid) ? pid : undefined
}

/** Finds a running bus: a request by name alone may start one. */
const findBusAddress = (env: NodeJS.ProcessEnv): string | undefined => {
  if (process.platform !== 'linux') return undefined
  if (env['DBUS_SESSION_BUS_ADDRESS']) return env['DBUS_SESSION_BUS_ADDRESS']
  const socket = env['XDG_RUNTIME_DIR'] && join(env['XDG_RUNTIME_DIR'], 'bus')
  return socket && existsSync(socket) ? `unix:path=${socket}` : undefined
}

const bus = { name: 'org.freedesktop.DBus', path: '/org/freedesktop/DBus' }
const watcher = { name: 'org.kde.StatusNotifierWatcher', path: '/StatusNotifierWatcher' }

type Question = {
  readonly of: typeof bus
  readonly method: `${string}.${string}`
  readonly words?: readonly string[]
}

/** Programs that can call a method on the bus; one is usually installed. */
const askers: Readonly<Record<string, (question: Question) => string[]>> = {
  gdbus: ({ of: { name, path }, method, words = [] }) => [
    ...`call --session --timeout 1 -d ${name} -o ${path} -m ${method}`.split(' '),
    ...words,
  ],
  'dbus-send': ({ of: { name, path }, method, words = [] }) => [
    ...`--session --print-reply --reply-timeout=1000 --dest=${name} ${path} ${method}`.split(' '),
    ...words.map((word) => `string:${word}`),
  ],
  busctl: ({ of: { name, path }, method, words = [] }) => {
    const dot = method.lastIndexOf('.')
    const member = `${method.slice(0, dot)} ${method.slice(dot + 1)}`
    const call = `--user --timeout=1 call ${name} ${path} ${member}`.split(' ')
    return words.length === 0 ? call : [...call, 's'.repeat(words.length), ...words]
  },
}

const ask = async (
  address: string,
  env: NodeJS.ProcessEnv,
  question: Question,
): Promise<string | undefined> => {
  for (const [name, toArguments] of Object.entries(askers)) {
    const path = await findProgram(name, env['PATH'] ?? '', undefined)
    if (path === undefined) continue
    const options = {
      timeout: 1500,
      killSignal: 'SIGKILL',
      env: { ...env, DBUS_SESSION_BUS_ADDRESS: address },
    } as const
    const answer = await new Promise<string | undefined>((resolve) => {
      execFile(path, toArguments(question), options, (error, stdout) =>
        resolve(error ? undefined : stdout),
      )
    })
    if (answer !== undefined) return answer
  }
  return undefined
}

const hasOwner = async (name: string, address: string, env: NodeJS.ProcessEnv) => {
  const question = { of: bus, method: 'org.freedesktop.DBus.NameHasOwner', words: [name] } as const
  const answer = await ask(address, env, question)
  return answer === undefined ? undefined : /\btrue\b/.test(answer)
}

/** The watcher only lists icons; a panel that shows them registers as its host. */
const hasHost = async (address: string, env: NodeJS.ProcessEnv) => {
  const isThere = await hasOwner(watcher.name, address, env)
  if (!isThere) return isThere
  const answer = await ask(address, env, {
    of: watcher,
    method: 'org.freedesktop.DBus.Properties.Get',
    words: [watcher.name, 'IsStatusNotifierHostRegistered'],
  })
  return answer === undefined ? undefined : /\btrue\b/.test(answer)
}

/** Also true for a service that the bus starts on demand. */
const canStart = async (name: string, address: string, env: NodeJS.ProcessEnv) => {
  const isOwned = await hasOwner(name, address, env)
  if (isOwned !== false) return isOwned
  const question = { of: bus, method: 'org.freedesktop.DBus.ListActivatableNames' } as const
  return (await ask(address, env, question))?.includes(name)
}

/** Looks for the soname of the packaged program; on Debian it is a link that is not in the cache. */
const hasLibrary = async (): Promise<boolean> => {
  const below = async (folder: string) =>
    (await readdir(folder).catch(() => []))
      .filter((name) => name.includes('-linux-gnu'))
      .map((name) => join(folder, name))
  const folders = ['/usr/lib64', '/usr/lib', '/lib64', '/lib', ...(await below('/usr/lib'))]
  return folders.some((folder) => existsSync(join(folder, 'libappindicator3.so.1')))
}

const { ok, warning, error, skipped } = checksFor('tray')

type Delivering = {
  readonly webhooks: readonly (Pick<Config['webhooks'][number], 'path' | 'enabled'> & {
    readonly rules: readonly { readonly targets: readonly { readonly kind: string }[] }[]
  })[]
}

/**
 * Checks the tray's program, whether this session can show its icon and notifications, and whether it runs if
 * an enabled webhook delivers to it.
 */
export const checkTray = (facts: DesktopFacts, config?: Delivering): Check[] => {
  const { pid } = facts
  return [
    checkTrayProgram(facts),
    pid === undefined ? absent(facts, config) : ok('running', `pid ${pid}`),
    ...(facts.platform === 'linux' ? checkSession(facts) : []),
  ]
}

const absent = (facts: DesktopFacts, config: Delivering | undefined): Check => {
  const waiting = (config?.webhooks ?? []).filter(
    ({ enabled, rules }) =>
      enabled && rules.some(({ targets }) => targets.some(({ kind }) => kind === 'notify')),
  )
  const [first, ...more] = waiting
  if (!first) return skipped('running', 'it does not run; start it with: doorward tray')
  const deliver = more.length === 0 ? 'delivers' : `and ${more.length} more deliver`
  return warning(
    'running',
    `it does not run, so nothing shows what ${first.path} ${deliver} to notify:desktop`,
    isWithoutDesktop(facts)
      ? 'there is no desktop here: deliver to log or to a file, or watch with: doorward events --follow'
      : 'doorward tray',
  )
}

const checkTrayProgram = ({ program, platform, arch }: DesktopFacts): Check => {
  switch (program) {
    case 'good':
      return ok('program', 'its checksum is correct')
    case 'changed':
      return error('program', 'its checksum is wrong, so it is not run', 'install doorward again')
    case 'missing':
      return error('program', 'it is missing', 'install doorward again, with its dependencies')
    case 'none':
      return skipped('program', `there is none for ${platform} ${arch}`)
  }
}

/** Whether the icon has a place, as the tray looks for one. */
const hasAnyHost = ({ hasHost, hasXHost }: DesktopFacts): boolean =>
  hasHost === true || hasXHost === true

/** A container, or a login over ssh, which has a session bus too, but no panel. */
const isWithoutDesktop = ({ platform, hasDisplay, hasHost }: DesktopFacts): boolean =>
  platform === 'linux' && !hasDisplay && !hasHost

const checkSession = (facts: DesktopFacts): Check[] => {
  const { hasBus, hasHost, hasNotifications, hasLibrary } = facts
  if (isWithoutDesktop(facts)) return [skipped('session', 'this is not a desktop session')]
  return [
    hasLibrary
      ? ok('library', 'libappindicator3 is installed')
      : // Without the library the tray shows the icon itself, and needs a panel.
        hasHost
        ? ok('library', 'libappindicator3 is missing: the tray shows the icon itself')
        : warning(
            'library',
            'libappindicator3.so.1 is missing, which the packaged program needs',
            'Debian, Ubuntu: sudo apt install libayatana-appindicator3-1; Fedora: sudo dnf install libappindicator-gtk3; Arch: sudo pacman -S libappindicator-gtk3',
          ),
    checkHost(facts),
    checkNotifications(hasBus, hasNotifications),
  ]
}

const noBus = 'there is no session bus'
const noAsker = 'no program here can ask the session bus (gdbus, dbus-send or busctl)'

const checkHost = (facts: DesktopFacts): Check => {
  const { hasBus, hasHost, isGnome } = facts
  if (hasAnyHost(facts)) return ok('host', 'a panel shows tray icons')
  if (!hasBus || hasHost === undefined) return skipped('host', hasBus ? noAsker : noBus)
  const wait = 'doorward tray --wait shows notifications without it'
  return warning(
    'host',
    'no panel of this session shows tray icons',
    isGnome ? `${gnomeExtensionHint}; ${wait}` : `start a bar with a tray, such as waybar; ${wait}`,
  )
}

const checkNotifications = (hasBus: boolean, has: boolean | undefined): Check => {
  if (!hasBus || has === undefined) return skipped('notifications', hasBus ? noAsker : noBus)
  return has
    ? ok('notifications', 'a service shows them')
    : warning(
        'notifications',
        'no service of this session shows notifications',
        'install one, for example: sudo apt install dunst',
      )
}
