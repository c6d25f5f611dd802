import { daemonAtLogin, serviceOf, trayAtLogin } from '../shared/service/service.ts'
import { plainLine } from '../shared/text.ts'
import type { Context } from './context.ts'
import { stopRunning } from './daemon-stop.ts'

/**
 * The daemon (and with --tray the tray) starts no more at login. A daemon that a service manager runs is
 * stopped, for nothing would watch over it; nothing installed is fine.
 */
export const uninstallDaemon = async (
  context: Context,
  _args: string[],
  { tray = false }: { readonly tray?: boolean },
): Promise<void> => {
  const { home, terminal } = context
  const service = await serviceOf(home)
  // Our own stop says what it waits for, and what is dropped.
  const stopped =
    (await service?.state())?.is === 'running' ? await stopRunning(context) : undefined
  const removed = await daemonAtLogin(home).turnOff()
  if (tray) removed.push(...(await trayAtLogin(home).turnOff()))
  const trayStays = await trayAtLogin(home).isOn()
  if (terminal.json) {
    const pid = stopped === undefined ? {} : { pid: stopped }
    terminal.printJson({ installed: false, tray: trayStays, removed, ...pid })
    return
  }
  if (stopped !== undefined) terminal.print(`stopped (pid ${stopped})`)
  for (const path of removed) terminal.print(`removed ${plainLine(path)}`)
  if (removed.length === 0) terminal.print('nothing was installed')
  if (stopped !== undefined) terminal.say('hint: doorward daemon start runs it until you log out')
  if (trayStays)
    terminal.say('hint: the tray still starts at login; doorward daemon uninstall --tray ends that')
}
