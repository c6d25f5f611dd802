import { createHash } from 'node:crypto'
import { lstat, mkdir, readFile, readlink, rmdir, symlink, unlink } from 'node:fs/promises'
import { dirname, isAbsolute, posix, relative, resolve, win32 } from 'node:path'
import { nodeOptions } from '../client/spawn.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { writeFileAtomic } from '../home/files.ts'
import { type Home, systemReason } from '../home/home.ts'
import { cliProgram, daemonProgram, daemonUnderLaunchd } from '../version.ts'
import { stableSearchPath, type ServiceContext } from './platform.ts'
import {
  daemonUnit,
  desktopEntry,
  failedUnit,
  launchAgent,
  type Marker,
  readMarker,
  startupScript,
} from './units.ts'

/** A file that makes something start at login. */
export type LoginItem = {
  readonly path: string
  readonly text: string
  readonly encoding: 'utf8' | 'utf16le'
  /** A link to it by which systemd starts it; without it the file does nothing. */
  readonly link?: string
}

/** `doorward`, and for a home that is not the usual one a name of its own. */
const nameOfHome = (
  home: Home,
  { platform, userHome }: Pick<ServiceContext, 'platform' | 'userHome'>,
): string => {
  const usual = (platform === 'win32' ? win32 : posix).join(userHome, '.doorward')
  if (home.root === usual) return 'doorward'
  return `doorward-${createHash('sha256').update(home.root).digest('hex').slice(0, 8)}`
}

/** Folders of the files, by the specification of each system. */
const getFolders = ({ platform, env, userHome }: ServiceContext) => {
  const fromEnv = env['XDG_CONFIG_HOME']
  // A relative one is to be ignored (XDG Base Directory Specification).
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

/** The name of the daemon at the service manager of the system. */
export const serviceName = (home: Home, context: ServiceContext): string =>
  context.platform === 'darwin'
    ? `local.${nameOfHome(home, context)}.daemon`
    : `${nameOfHome(home, context)}.service`

/** What to run, and the marker that says so. Throws `login-item-failed` for a name no format can hold. */
const command = (
  home: Home,
  context: ServiceContext,
  program: string,
  more: readonly string[],
  options: readonly string[] = [],
) => {
  const { node, packageRoot, platform } = context
  const path = (platform === 'win32' ? win32 : posix).join(packageRoot, ...program.split('/'))
  const marker: Marker = { node, program: path, home: home.root }
  for (const name of [node, path, home.root])
    if (/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/.test(name))
      throw new DoorwardError(
        'login-item-failed',
        'a folder of doorward has a control character in its name',
        { hint: 'rename it: a file that starts programs at login cannot hold it' },
      )
  return {
    marker,
    argv: [node, ...options, path, ...more] as const satisfies [string, ...string[]],
  }
}

const icon = ({ packageRoot }: ServiceContext) =>
  posix.join(packageRoot, 'assets', 'icons', 'idle@2x.png')

/** How long a stop may take: what the daemon waits for, and then some for its agents to end. */
const stopTimeoutS = (drainTimeoutMs: number): number =>
  Math.max(90, Math.ceil(drainTimeoutMs / 1000) + 30)

/** The files by which the daemon starts at login, the one that starts it first. */
export const daemonItems = (
  home: Home,
  context: ServiceContext,
  drainTimeoutMs: number,
): [LoginItem, ...LoginItem[]] => {
  const { platform, uid, systemd } = context
  const folders = getFolders(context)
  const name = nameOfHome(home, context)
  if (platform === 'linux' && systemd !== undefined) {
    const run = command(home, context, daemonProgram, ['--home', home.root], nodeOptions)
    const failedName = `${name}-failed`
    const unit = daemonUnit({
      ...run,
      failedName,
      searchPath: stableSearchPath(context),
      stderr: posix.join(home.logs, 'daemon.stderr'),
      stopTimeoutS: stopTimeoutS(drainTimeoutMs),
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
    const run = command(home, context, daemonUnderLaunchd, ['--home', home.root], nodeOptions)
    const label = serviceName(home, context)
    const text = launchAgent({
      ...run,
      label,
      environment: { PATH: stableSearchPath(context), DOORWARD_SERVICE: 'launchd' },
      stderr: posix.join(home.logs, 'daemon.stderr'),
      startAgainWhen: 'failed',
      processType: 'Standard',
      stopTimeoutS: stopTimeoutS(drainTimeoutMs),
    })
    return [{ path: posix.join(folders.agents, `${label}.plist`), text, encoding: 'utf8' }]
  }
  // Nobody watches over it there: the command starts it in the background, and ends.
  const more = ['daemon', 'start', '--quiet', '--home', home.root]
  const run = command(home, context, cliProgram, more)
  if (platform === 'win32') return [scriptItem(`${name}-daemon.vbs`, run, folders.startup)]
  const text = desktopEntry({
    ...run,
    name: 'Doorward daemon',
    comment: 'The local gateway',
    icon: icon(context),
  })
  return [{ path: posix.join(folders.autostart, `${name}-daemon.desktop`), text, encoding: 'utf8' }]
}

/** The file by which the tray starts at login. */
export const trayItem = (home: Home, context: ServiceContext): LoginItem => {
  const folders = getFolders(context)
  const name = nameOfHome(home, context)
  const more = ['--home', home.root, '--wait']
  const run = command(home, context, 'dist/tray/main.js', more)
  if (context.platform === 'win32') return scriptItem(`${name}-tray.vbs`, run, folders.startup)
  if (context.platform === 'darwin') {
    const label = `local.${name}.tray`
    const text = launchAgent({
      ...run,
      label,
      environment: { PATH: stableSearchPath(context) },
      stderr: posix.join(home.logs, 'tray.stderr'),
      startAgainWhen: 'crashed',
      processType: 'Interactive',
      stopTimeoutS: 20,
    })
    return { path: posix.join(folders.agents, `${label}.plist`), text, encoding: 'utf8' }
  }
  const text = desktopEntry({
    ...run,
    name: 'Doorward',
    comment: 'Icon, menu and notifications of the local gateway',
    icon: icon(context),
  })
  return { path: posix.join(folders.autostart, `${name}-tray.desktop`), text, encoding: 'utf8' }
}

const scriptItem = (
  name: string,
  { marker, argv }: { readonly marker: Marker; readonly argv: readonly [string, ...string[]] },
  folder: string,
): LoginItem => ({
  path: win32.join(folder, name),
  text: startupScript(marker, argv),
  encoding: 'utf16le',
})

type Found =
  | { readonly is: 'missing' }
  | { readonly is: 'foreign'; readonly why: string }
  | { readonly is: 'ours'; readonly text: string; readonly marker: Marker }

/** What lies at the path of an item. Throws `login-item-failed` when it cannot be read. */
export const inspectItem = async ({ path, encoding }: LoginItem, home: Home): Promise<Found> => {
  if (!isAbsolute(path)) return { is: 'missing' }
  try {
    if ((await lstat(path)).isSymbolicLink()) return { is: 'foreign', why: 'is a symbolic link' }
    const text = await readFile(path, encoding)
    const marker = readMarker(text)
    if (!marker) return { is: 'foreign', why: 'was not written by doorward' }
    if (marker.home !== home.root)
      return { is: 'foreign', why: `is that of another home, ${marker.home}` }
    return { is: 'ours', text, marker }
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return { is: 'missing' }
    throw failed('read', path, error)
  }
}

/**
 * Writes an item and its link where they differ; gives the paths that changed. Throws
 * `login-item-foreign` for a file of that name that is not ours, `login-item-failed`.
 */
export const writeItem = async (item: LoginItem, home: Home): Promise<string[]> => {
  // By the home folder of a user who has none.
  if (!isAbsolute(item.path))
    throw new DoorwardError('login-item-failed', 'no home folder to write to: HOME is not set', {
      hint: 'set HOME',
    })
  const found = await inspectItem(item, home)
  if (found.is === 'foreign')
    throw new DoorwardError('login-item-foreign', `${item.path} ${found.why}: it was left alone`, {
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
    throw failed('write', item.path, error)
  }
  return written
}

/** True when the link that makes an item take effect is there. */
export const isLinked = async ({ path, link }: LoginItem): Promise<boolean> => {
  if (!link) return true
  try {
    return resolve(dirname(link), await readlink(link)) === path
  } catch {
    return false
  }
}

/** Removes an item of ours and its link; gives what was removed, and leaves what is not ours. */
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
    throw failed('remove', item.path, error)
  }
  return removed
}

const failed = (what: string, path: string, error: unknown): DoorwardError =>
  new DoorwardError('login-item-failed', `cannot ${what} ${path}: ${systemReason(error)}`, {
    cause: error,
    hint: 'make its folder writable for you',
  })
