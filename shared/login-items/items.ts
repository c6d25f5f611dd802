import { createHash } from 'node:crypto'
import { posix, win32 } from 'node:path'
import { DoorwardError } from '../errors.ts'
import type { Home } from '../home.ts'
import { nodeOptions } from '../node-options.ts'
import { desktopEntry } from './desktop-entry.ts'
import { launchAgent } from './launch-agent.ts'
import type { Marker } from './marker.ts'
import { startupScript } from './startup-script.ts'
import { type Surroundings, lastingPath } from './surroundings.ts'
import { daemonUnit, failedUnit } from './systemd-unit.ts'
import { cliProgram, daemonProgram, daemonUnderLaunchd } from '../version.ts'

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
  { platform, userHome }: Pick<Surroundings, 'platform' | 'userHome'>,
): string => {
  const usual = (platform === 'win32' ? win32 : posix).join(userHome, '.doorward')
  if (home.root === usual) return 'doorward'
  return `doorward-${createHash('sha256').update(home.root).digest('hex').slice(0, 8)}`
}

/** Folders of the files, by the specification of each system. */
const foldersOf = ({ platform, env, userHome }: Surroundings) => {
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
export const serviceName = (home: Home, surroundings: Surroundings): string =>
  surroundings.platform === 'darwin'
    ? `local.${nameOfHome(home, surroundings)}.daemon`
    : `${nameOfHome(home, surroundings)}.service`

/** What to run, and the marker that says so. Throws `login-item-failed` for a name no format can hold. */
const command = (
  home: Home,
  surroundings: Surroundings,
  program: string,
  more: readonly string[],
  options: readonly string[] = [],
) => {
  const { node, packageRoot, platform } = surroundings
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

const icon = ({ packageRoot }: Surroundings) =>
  posix.join(packageRoot, 'assets', 'icons', 'idle@2x.png')

/** How long a stop may take: what the daemon waits for, and then some for its agents to end. */
const stopTimeoutS = (drainTimeoutMs: number): number =>
  Math.max(90, Math.ceil(drainTimeoutMs / 1000) + 30)

/** The files by which the daemon starts at login, the one that starts it first. */
export const daemonItems = (
  home: Home,
  surroundings: Surroundings,
  drainTimeoutMs: number,
): [LoginItem, ...LoginItem[]] => {
  const { platform, uid, systemd } = surroundings
  const folders = foldersOf(surroundings)
  const name = nameOfHome(home, surroundings)
  if (platform === 'linux' && systemd !== undefined) {
    const run = command(home, surroundings, daemonProgram, ['--home', home.root], nodeOptions)
    const failedName = `${name}-failed`
    const unit = daemonUnit({
      ...run,
      failedName,
      searchPath: lastingPath(surroundings),
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
    const run = command(home, surroundings, daemonUnderLaunchd, ['--home', home.root], nodeOptions)
    const label = serviceName(home, surroundings)
    const text = launchAgent({
      ...run,
      label,
      environment: { PATH: lastingPath(surroundings), DOORWARD_SERVICE: 'launchd' },
      stderr: posix.join(home.logs, 'daemon.stderr'),
      startAgainWhen: 'failed',
      processType: 'Standard',
      stopTimeoutS: stopTimeoutS(drainTimeoutMs),
    })
    return [{ path: posix.join(folders.agents, `${label}.plist`), text, encoding: 'utf8' }]
  }
  // Nobody watches over it there: the command starts it in the background, and ends.
  const more = ['daemon', 'start', '--quiet', '--home', home.root]
  const run = command(home, surroundings, cliProgram, more)
  if (platform === 'win32') return [scriptItem(`${name}-daemon.vbs`, run, folders.startup)]
  const text = desktopEntry({
    ...run,
    name: 'Doorward daemon',
    comment: 'The local gateway',
    icon: icon(surroundings),
  })
  return [{ path: posix.join(folders.autostart, `${name}-daemon.desktop`), text, encoding: 'utf8' }]
}

/** The file by which the tray starts at login. */
export const trayItem = (home: Home, surroundings: Surroundings): LoginItem => {
  const folders = foldersOf(surroundings)
  const name = nameOfHome(home, surroundings)
  const more = ['--home', home.root, '--wait']
  const run = command(home, surroundings, 'dist/tray/main.js', more)
  if (surroundings.platform === 'win32') return scriptItem(`${name}-tray.vbs`, run, folders.startup)
  if (surroundings.platform === 'darwin') {
    const label = `local.${name}.tray`
    const text = launchAgent({
      ...run,
      label,
      environment: { PATH: lastingPath(surroundings) },
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
    icon: icon(surroundings),
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
