import { fileURLToPath } from 'node:url'
import type { EventRecord } from '../shared/api.ts'
import type { Home } from '../shared/home.ts'
import { packageFolder } from '../shared/version.ts'
import { createClicks } from './clicks.ts'
import { answered, failed, momentNow, startFailed, starting, unknownDaemon } from './daemon-view.ts'
import { follow } from './follow.ts'
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
 * Runs the tray of a home until Quit or a signal; `folder` is private and takes the tray program.
 * Throws the tray errors when no icon can be shown, at the start or when the desktop goes away.
 */
export const runTray = async (home: Home, folder: string): Promise<void> => {
  const stopping = new AbortController()
  const quit = () => stopping.abort()
  process.once('SIGTERM', quit).once('SIGINT', quit).once('SIGHUP', quit)
  const say = (line: string) => process.stderr.write(`doorward tray: ${line}\n`)
  const notifier = desktopNotifier(
    ({ failure }) => assetOf(failure ? 'needs-you@2x.png' : 'idle@2x.png'),
    say,
  )
  const notes = noteOnce(notifier.show)

  // Without an icon there is nothing to draw again.
  let redraw = (): void => undefined
  const clicks = await createClicks({
    home,
    show: notifier.show,
    changed: () => redraw(),
    quit,
    say,
    signal: stopping.signal,
  })
  let daemon = unknownDaemon
  let shown: SteadyIcon | undefined
  let timer: NodeJS.Timeout | undefined
  const face = (): Face => {
    const now = Date.now()
    const utcOffset = -new Date(now).getTimezoneOffset()
    const view = { daemon: daemon.view, now, utcOffset, own: clicks.own() }
    const steady = performance.now()
    shown = steadyIcon(shown, iconOf(view), steady)
    clearTimeout(timer)
    if (shown.lookAgainAt) timer = setTimeout(() => redraw(), shown.lookAgainAt - steady)
    const icon = assetOf(`${shown.name}@2x.png`)
    return { rows: menu(view), icon, tooltip: `Doorward: ${statusLine(view)}` }
  }
  const icon = await keepIcon(folder, face(), ({ action }) => {
    if (action) clicks.click(action)
  })
  redraw = () => icon.show(face())
  redraw()
  const become = (next: typeof daemon) => {
    daemon = next
    redraw()
  }

  const following = follow(
    home,
    {
      onStatus: (status) => become(answered(status, momentNow())),
      onEvent: (event) => {
        if (clicks.own().notifications || isForDesktop(event)) notes.event(event)
      },
      onLost: (loss) => {
        // Only at the start: a daemon that was stopped later was stopped on purpose.
        if (daemon !== unknownDaemon || loss.runs) return become(failed(daemon, loss, momentNow()))
        become(starting(momentNow()))
        const isWanted = () => !stopping.signal.aborted && daemon.lastSeen === undefined
        startDaemon(home, (why) => become(startFailed(daemon, why)), undefined, isWanted)
      },
    },
    stopping.signal,
  )

  try {
    await Promise.race([icon.lost, following])
  } finally {
    quit()
    clearTimeout(timer)
    notes.stop()
    await Promise.all([icon.stop(), following, notifier.idle()])
  }
}

const isForDesktop = ({ targets }: EventRecord): boolean =>
  targets.some(({ target }) => target === 'notify:desktop')

const assetOf = (name: string): string =>
  fileURLToPath(new URL(`assets/icons/${name}`, packageFolder))
