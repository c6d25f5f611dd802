import { createHash } from 'node:crypto'
import { lstat, mkdir, readFile, readlink, rmdir, symlink, unlink } from 'node:fs/promises'
import { dirname, isAbsolute, posix, relative, resolve, win32 } from 'node:path'
import { nodeOptions } from '../client/spawn.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { writeFileAtomic } from '../home/files.ts'
import { type Home, systemReason } from '../home/home.ts'
import { publicVariables } from '../network/variables.ts'
import { cliProgram, daemonProgram, daemonUnderLaunchd } from '../version.ts'
import { stableSearchPath, type ServiceContext } from './platform.ts'
import {
  daemonUnit,
  desktopEntry,
  failedUnit,
  launchAgent,
  type Marker,
  readMarker,
  type Launch,
  startupScript,
} from './units.ts'

/** A file that starts a program at login. */
export type LoginItem = {
  readonly path: string
  readonly text: string
  readonly encoding: 'utf8' | 'utf16le'
  /** The link that enables a unit of systemd; without it the file has no effect. */
  readonly link?: string
}

/** `doorward`, and a unique name for a home that is not the default one. */
const getBaseName = (
  home: Home,
  { platform, userHome }: Pick<ServiceContext, 'platform' | 'userHome'>,
): string => {
  const usual = (platform === 'win32' ? win32 : posix).join(userHome, '.doorward')
  if (home.root === usual) return 'doorward'
  return `doorward-${createHash('sha256').update(home.root).digest('hex').slice(0, 8)}`
}

/** The folders of the files on each system. */
const getFolders = ({ platform, env, userHome }: ServiceContext) => {
  const fromEnv = env['XDG_CONFIG_HOME']
  // A relative path must be ignored (XDG Base Directory Specification).
  const config = fromEnv && posix.isAbsolute(fromEnv) ? fromEnv : posix.join(userHome, '.config')
  const roaming = env['APPDATA'] || win32.join(userHome, 'AppData', 'Roaming')
  return {
    units: posix.join(config, 'systemd', 'user'),
    autostart: posix.join(config, 'autostart'),
    agents: posix.join(userHome, 'Library', 'LaunchAgents'),
    startup:
      platform === 'win32'
        ? win32.join(roaming, 'Microsoft', 'Windows', 'Start Menu', 'Programs', 'Startup')
        : '',
  }
}

/** The daemon's name in the service manager of the system. */
export const serviceName = (home: Home, context: ServiceContext): string =>
  context.platform === 'darwin'
    ? `local.${getBaseName(home, context)}.daemon`
    : `${getBaseName(home, context)}.service`

/** The program to run. Throws `login-item-failed` for a name that no format can contain. */
const toLaunch = (
  home: Home,
  context: ServiceContext,
  program: string,
  args: readonly string[],
  options: readonly string[] = [],
): Launch => {
  const { node, packageRoot, platform, env } = context
  const path = (platform === 'win32' ? win32 : posix).join(packageRoot, ...program.split('/'))
  const marker: Marker = { node, program: path, home: home.root }
  for (const name of [node, path, home.root])
    if (/[\u0000-\u001f\u007f]/.test(name))
      throw new DoorwardError(
        'login-item-failed',
        'a folder of doorward has a control character in its name',
        { hint: 'rename it: a file that starts programs at login cannot contain it' },
      )
  return { marker, argv: [node, ...options, path, ...args], network: publicVariables(env) }
}

const getIcon = ({ packageRoot }: ServiceContext) =>
  posix.join(packageRoot, 'assets', 'icons', 'idle@2x.png')

/** How long a stop may take: the daemon drains, then its agents exit. */
const toStopTimeoutS = (drainTimeoutMs: number): number =>
  Math.max(90, Math.ceil(drainTimeoutMs / 1000) + 30)

/** The files that start the daemon at login, beginning with the one that runs it. */
export const daemonItems = (
  home: Home,
  context: ServiceContext,
  drainTimeoutMs: number,
): [LoginItem, ...LoginItem[]] => {
  const { platform, uid, systemd } = context
  const folders = getFolders(context)
  const name = getBaseName(home, context)
  if (platform === 'linux' && systemd !== undefined) {
    const run = toLaunch(home, context, daemonProgram, ['--home', home.root], nodeOptions)
    const failedName = `${name}-failed`
    const unit = daemonUnit({
      ...run,
      failedName,
      searchPath: stableSearchPath(context),
      stderr: posix.join(home.logs, 'daemon.stderr'),
      stopTimeoutS: toStopTimeoutS(drainTimeoutMs),
      isRoot: uid === 0,
      version: systemd,
    })
    const link = posix.join(folders.units, 'default.target.wants', `${name}.service`)
    return [
      { path: posix.join(folders.units, `${name}.service`), text: unit, encoding: 'utf8', link },
      {
        path: posix.join(folders.units, `${failedName}.service`),
        text: failedUnit(run.marker),
        encoding: 'utf8',
      },
    ]
  }
  if (platform === 'darwin') {
    const run = toLaunch(home, context, daemonUnderLaunchd, ['--home', home.root], nodeOptions)
    const label = serviceName(home, context)
    const text = launchAgent({
      ...run,
      label,
      environment: { PATH: stableSearchPath(context), DOORWARD_SERVICE: 'launchd' },
      stderr: posix.join(home.logs, 'daemon.stderr'),
      restartAfter: 'failed',
      processType: 'Standard',
      stopTimeoutS: toStopTimeoutS(drainTimeoutMs),
    })
    return [{ path: posix.join(folders.agents, `${label}.plist`), text, encoding: 'utf8' }]
  }
  // No service manager there: the command starts the daemon in the background, and exits.
  const args = ['daemon', 'start', '--quiet', '--home', home.root]
  const run = toLaunch(home, context, cliProgram, args)
  if (platform === 'win32') return [scriptItem(`${name}-daemon.vbs`, run, folders.startup)]
  const text = desktopEntry({
    ...run,
    name: 'Doorward daemon',
    comment: 'The local gateway',
    icon: getIcon(context),
  })
  return [{ path: posix.join(folders.autostart, `${name}-daemon.desktop`), text, encoding: 'utf8' }]
}

/** The file that starts the tray at login. */
export const trayItem = (home: Home, context: ServiceContext): LoginItem => {
  const folders = getFolders(context)
  const name = getBaseName(home, context)
  const args = ['--home', home.root, '--wait']
  const run = toLaunch(home, context, 'dist/tray/main.js', args)
  if (context.platform === 'win32') return scriptItem(`${name}-tray.vbs`, run, folders.startup)
  if (context.platform === 'darwin') {
    const label = `local.${name}.tray`
    const text = launchAgent({
      ...run,
      label,
      environment: { PATH: stableSearchPath(context) },
      stderr: posix.join(home.logs, 'tray.stderr'),
      restartAfter: 'crashed',
      processType: 'Interactive',
      stopTimeoutS: 20,
    })
    return { path: posix.join(folders.agents, `${label}.plist`), text, encoding: 'utf8' }
  }
  const text = desktopEntry({
    ...run,
    name: 'Doorward',
    comment: 'Icon, menu and notifications of the local gateway',
    icon: getIcon(context),
  })
  return { path: posix.join(folders.autostart, `${name}-tray.desktop`), text, encoding: 'utf8' }
}

const scriptItem = (name: string, launch: Launch, folder: string): LoginItem => ({
  path: win32.join(folder, name),
  text: startupScript(launch),
  encoding: 'utf16le',
})

type ItemState =
  | { readonly is: 'missing' }
  | { readonly is: 'foreign'; readonly why: string }
  | { readonly is: 'ours'; readonly text: string; readonly marker: Marker }

/** The file at the path of an item. Throws `login-item-failed` when it cannot be read. */
export const inspectItem = async (
  { path, encoding }: LoginItem,
  home: Home,
): Promise<ItemState> => {
  if (!isAbsolute(path)) return { is: 'missing' }
  try {
    if ((await lstat(path)).isSymbolicLink()) return { is: 'foreign', why: 'is a symbolic link' }
    const text = await readFile(path, encoding)
    const marker = readMarker(text)
    if (!marker) return { is: 'foreign', why: 'was not written by doorward' }
    if (marker.home !== home.root)
      return { is: 'foreign', why: `belongs to another home, ${marker.home}` }
    return { is: 'ours', text, marker }
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return { is: 'missing' }
    throw toFailure('read', path, error)
  }
}

/**
 * Writes an item and its link where they differ. Returns the paths that changed. Throws
 * `login-item-foreign` for a file of that name that is not ours, `login-item-failed`.
 */
export const writeItem = async (item: LoginItem, home: Home): Promise<string[]> => {
  // The user has no home folder.
  if (!isAbsolute(item.path))
    throw new DoorwardError('login-item-failed', 'no home folder to write to: HOME is not set', {
      hint: 'set HOME',
    })
  const found = await inspectItem(item, home)
  if (found.is === 'foreign')
    throw new DoorwardError('login-item-foreign', `${item.path} ${found.why}: not overwritten`, {
      hint: 'move it away, then run this again',
    })
  const written: string[] = []
  try {
    if (found.is === 'missing' || found.text !== item.text) {
      await mkdir(dirname(item.path), { recursive: true, mode: 0o700 })
      await writeFileAtomic(item.path, Buffer.from(item.text, item.encoding), 0o644)
      written.push(item.path)
    }
    if (item.link && !(await isLinked(item))) {
      await mkdir(dirname(item.link), { recursive: true, mode: 0o700 })
      await unlink(item.link).catch(() => undefined)
      await symlink(relative(dirname(item.link), item.path), item.link)
      written.push(item.link)
    }
  } catch (error) {
    throw toFailure('write', item.path, error)
  }
  return written
}

/** True when the link that enables an item exists. */
export const isLinked = async ({ path, link }: LoginItem): Promise<boolean> => {
  if (!link) return true
  try {
    return resolve(dirname(link), await readlink(link)) === path
  } catch {
    return false
  }
}

/** Removes our own item and its link, and no other file. Returns the paths. */
export const removeItem = async (item: LoginItem, home: Home): Promise<string[]> => {
  const found = await inspectItem(item, home)
  if (found.is === 'foreign') return []
  const removed: string[] = []
  try {
    if (item.link && (await isLinked(item))) {
      await unlink(item.link)
      removed.push(item.link)
      await rmdir(dirname(item.link)).catch(() => undefined)
    }
    if (found.is === 'ours') {
      await unlink(item.path)
      removed.push(item.path)
    }
  } catch (error) {
    throw toFailure('remove', item.path, error)
  }
  return removed
}

const toFailure = (what: string, path: string, error: unknown): DoorwardError =>
  new DoorwardError('login-item-failed', `cannot ${what} ${path}: ${systemReason(error)}`, {
    cause: error,
    hint: 'make its folder writable for you',
  })
