import { existsSync } from 'node:fs'
import { readEnvironment } from '../../../shared/config/environment.ts'
import { loadConfig } from '../../../shared/config/load.ts'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { prepareHome } from '../../../shared/home/home.ts'
import { listPasswordVariables, networkVariables } from '../../../shared/network/variables.ts'
import {
  readServiceContext,
  describeTemporaryInstall,
  type ServiceContext,
} from '../../../shared/service/platform.ts'
import {
  daemonAutostart,
  installedService,
  type Service,
  findService,
  trayAutostart,
} from '../../../shared/service/service.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { findRunningDaemon } from '../../daemon-client/connect.ts'
import { startAndConnect } from '../../daemon-client/start.ts'
import { stopRunning } from './stop.ts'

type Note = { readonly code: string; readonly detail: string; readonly hint: string }

/**
 * Makes the daemon (with --tray also the tray) start at login, starts the daemon now and prints the files
 * it wrote. Throws `login-item-foreign`, `login-item-failed`, and what a start of the daemon throws.
 */
export const installDaemon = async (
  context: Context,
  _args: string[],
  { tray = false }: { readonly tray?: boolean },
): Promise<void> => {
  const { home, terminal } = context
  await prepareHome(home)
  const around = await readServiceContext()
  const written = await daemonAutostart(home).turnOn()
  const changed = written.length > 0
  if (tray) written.push(...(await trayAutostart(home).turnOn()))
  const notes = [
    ...placeNotes(around),
    ...(await secretNotes(context)),
    ...(await proxyNotes(context)),
  ]
  if (!terminal.json) {
    for (const path of written) terminal.print(`wrote ${toPlainLine(path)}`)
    if (written.length === 0) terminal.print('nothing to write: already installed')
    for (const { detail, hint } of notes) terminal.warn(`warning: ${detail}\nhint: ${hint}`)
  }

  const manager = await installedService(home, around)
  const service = await findService(home)
  const daemon =
    context.start && !(manager && !service) ? await runNow(context, service, changed) : undefined
  if (terminal.json) {
    const starts = manager?.kind ?? (around.platform === 'win32' ? 'startup' : 'autostart')
    terminal.printJson({
      installed: true,
      by: starts,
      tray: await trayAutostart(home).isOn(),
      written,
      warnings: notes,
      running: daemon !== undefined,
      ...daemon,
    })
    return
  }
  if (daemon) terminal.print(`starts at login; runs now: ${daemon.url} (pid ${daemon.pid})`)
  else terminal.print('starts at login')
  if (manager && !service)
    terminal.say(
      `hint: ${manager.kind} does not answer in this session; log in again, or: ${manager.startCommand}`,
    )
  if (!manager && around.platform === 'linux')
    terminal.say('hint: your desktop starts it; without a desktop, or over ssh, nothing does')
  const linger = manager?.kind === 'systemd' ? lingerHint(process.env) : undefined
  if (linger) terminal.say(linger)
  if (tray)
    terminal.say('hint: doorward tray starts the tray now; at login it starts automatically')
}

/** Starts the daemon by its service, with the current files; restarts one that runs another way. */
const runNow = async (context: Context, service: Service | undefined, changed: boolean) => {
  const running = await findRunningDaemon(context)
  running?.close()
  if (running && !(await mustStartAgain(running.daemon.pid, service, changed)))
    return running.daemon
  if (running) {
    const pid = await stopRunning(context)
    context.terminal.say(`stopped (pid ${pid}), to start it by ${service?.kind}`)
  }
  // launchd keeps a loaded file until it is unloaded; systemd would retry a failed unit.
  if (changed) await service?.stop()
  const client = await startAndConnect(context)
  client.close()
  return client.daemon
}

const mustStartAgain = async (
  pid: number,
  service: Service | undefined,
  changed: boolean,
): Promise<boolean> => {
  if (!service) return false
  return changed || (await service.state()).pid !== pid
}

/** Warns about an installation that may be missing at the next login. */
const placeNotes = (around: ServiceContext): Note[] => {
  const notes: Note[] = []
  const place = describeTemporaryInstall(around)
  if (place)
    notes.push({
      code: 'passing-place',
      detail: `doorward runs from ${around.packageRoot}, ${place}: it may be missing at the next login`,
      hint: 'install it permanently (npm pack, then npm install -g with the file), then: doorward daemon install',
    })
  if (around.uid === 0 && around.env['SUDO_USER'])
    notes.push({
      code: 'installed-for-root',
      detail: 'this was installed for root, not for you',
      hint: 'doorward daemon uninstall with sudo, then doorward daemon install without',
    })
  return notes
}

/** Warns about secrets set only in this shell, which a daemon started at login does not get. */
const secretNotes = async ({ home }: Context): Promise<Note[]> => {
  try {
    const [mine, atLogin] = [await readEnvironment(home), await readEnvironment(home, {})]
    const config = await loadConfig(home, mine)
    const known = new Set(collectWarnings(config, mine).map(({ detail }) => detail))
    return collectWarnings(config, atLogin)
      .filter(({ detail }) => !known.has(detail))
      .map((one) => ({
        ...one,
        detail: `at login this shell's variables are missing: ${one.detail}`,
      }))
  } catch {
    // The start reports an invalid configuration.
    return []
  }
}

/** Warns about proxies with a password, which the files of the start at login must not contain. */
const proxyNotes = async ({ home }: Context): Promise<Note[]> => {
  const atLogin = await readEnvironment(home, {}).catch(() => ({}))
  const kept = networkVariables(atLogin)
  return listPasswordVariables(process.env)
    .filter((name) => kept[name] === undefined)
    .map((name) => ({
      code: 'proxy-password-not-kept',
      detail: `at login ${name} of this shell is missing: it has a password, which belongs into no file that starts programs`,
      hint: `write ${name}=… into .env: doorward config edit env`,
    }))
}

/**
 * Removes the start at login of the daemon (with --tray also of the tray). A daemon run by a service
 * manager is stopped, as nothing would supervise it. It is no error when nothing is installed.
 */
export const uninstallDaemon = async (
  context: Context,
  _args: string[],
  { tray = false }: { readonly tray?: boolean },
): Promise<void> => {
  const { home, terminal } = context
  const service = await findService(home)
  // Our own stop reports what it waits for and what it drops.
  const stopped =
    (await service?.state())?.is === 'running' ? await stopRunning(context) : undefined
  const removed = await daemonAutostart(home).turnOff()
  if (tray) removed.push(...(await trayAutostart(home).turnOff()))
  const trayStays = await trayAutostart(home).isOn()
  if (terminal.json) {
    const pid = stopped === undefined ? {} : { pid: stopped }
    terminal.printJson({ installed: false, tray: trayStays, removed, ...pid })
    return
  }
  if (stopped !== undefined) terminal.print(`stopped (pid ${stopped})`)
  for (const path of removed) terminal.print(`removed ${toPlainLine(path)}`)
  if (removed.length === 0) terminal.print('nothing was installed')
  if (stopped !== undefined) terminal.say('hint: doorward daemon start runs it until you log out')
  if (trayStays)
    terminal.say(
      'hint: the tray still starts at login; doorward daemon uninstall --tray removes that',
    )
}

/**
 * A hint for machines without a desktop: systemd stops a user's services with the last session unless
 * lingering is enabled (loginctl(1)). Undefined where it does not apply.
 */
const lingerHint = (env: NodeJS.ProcessEnv): string | undefined => {
  const hasDesktop = Boolean(env['DISPLAY'] || env['WAYLAND_DISPLAY'])
  const name = env['USER'] ?? env['LOGNAME'] ?? ''
  if (hasDesktop || (name !== '' && existsSync(`/var/lib/systemd/linger/${name}`))) return undefined
  return 'hint: it runs from your login to your logout; to run it from boot: loginctl enable-linger'
}
