import { fileURLToPath } from 'node:url'
import { nameOf } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'
import { packageFolder } from '../shared/version.ts'
import { act } from './act.ts'
import { answered, failed, isAbsent, startFailed, starting, unknownDaemon } from './daemon-view.ts'
import { follow } from './follow.ts'
import { watchHost } from './host.ts'
import { iconFile } from './icon-file.ts'
import { keepIcon } from './keep-icon.ts'
import { menu, statusLine } from './menu.ts'
import { noteOnce } from './note-once.ts'
import { desktopNotifier } from './notify.ts'
import { startDaemon } from './start-daemon.ts'
import { type SteadyIcon, steadyIcon } from './steady-icon.ts'
import type { Face } from './systray.ts'
import { iconOf } from './view.ts'

/*
 * The tray from start to end: show an icon, follow the daemon, and on every change make the whole
 * menu anew from what the daemon says. Nothing is remembered here that the daemon knows.
 */

/**
 * Runs the tray of a home until Quit or a signal; `folder` is private and takes the tray program;
 * `hostWaitMs` is how long a panel for the icon may take to come. Throws the tray errors when no icon can be shown, at the start or when the desktop goes away.
 */
export const runTray = async (home: Home, folder: string, hostWaitMs: number): Promise<void> => {
  const stopping = new AbortController()
  const quit = () => stopping.abort()
  process.once('SIGTERM', quit).once('SIGINT', quit).once('SIGHUP', quit)
  const say = (line: string) => process.stderr.write(`doorward tray: ${line}\n`)
  const notifier = desktopNotifier(
    ({ failure }) => assetOf(failure ? 'needs-you@2x.png' : 'idle@2x.png'),
    say,
  )
  const notes = noteOnce(notifier.show)

  let daemon = unknownDaemon
  let shown: SteadyIcon | undefined
  let timer: NodeJS.Timeout | undefined
  const face = (): Face => {
    const now = Date.now()
    const view = { daemon: daemon.view, now, utcOffset: -new Date(now).getTimezoneOffset() }
    shown = steadyIcon(shown, iconOf(view), now)
    clearTimeout(timer)
    if (shown.lookAgainAt) timer = setTimeout(redraw, shown.lookAgainAt - now)
    return {
      rows: menu(view),
      icon: iconFile(shown.name),
      tooltip: `Doorward: ${statusLine(view)}`,
    }
  }
  const icon = await keepIcon(folder, face(), (row) => {
    if (!row.action) return
    act(row.action, { home, show: notifier.show, quit }).catch((error) => say(nameOf(error)))
  })
  const redraw = () => icon.show(face())
  const hosting = watchHost({
    env: process.env,
    program: icon.program,
    waitMs: hostWaitMs,
    onWaiting: () => say('waits for a panel that shows tray icons'),
    signal: stopping.signal,
  })
  const become = (next: typeof daemon) => {
    daemon = next
    redraw()
  }

  const following = follow(
    home,
    {
      onStatus: (status) => become(answered(status, Date.now())),
      onEvent: notes.event,
      onLost: (error) => {
        // Only at the start: a daemon that was stopped later was stopped on purpose.
        if (daemon !== unknownDaemon || !isAbsent(error))
          return become(failed(daemon, error, Date.now()))
        become(starting(Date.now()))
        try {
          startDaemon(home, (why) => become(startFailed(daemon, why)))
        } catch (error) {
          become(startFailed(daemon, nameOf(error)))
        }
      },
    },
    stopping.signal,
  )

  try {
    await Promise.race([icon.lost, hosting, following])
  } finally {
    quit()
    clearTimeout(timer)
    notes.stop()
    await Promise.all([icon.stop(), following, notifier.idle()])
  }
}

const assetOf = (name: string): string =>
  fileURLToPath(new URL(`assets/icons/${name}`, packageFolder))
