import type { Home } from '../shared/home/home.ts'
import { createClicks } from './actions/actions.ts'
import { startDaemon } from './actions/daemon.ts'
import {
  answered,
  failed,
  hasCrashed,
  momentNow,
  startFailed,
  starting,
  unknownDaemon,
} from './daemon-state.ts'
import {
  iconFile,
  getIconName,
  keepIcon,
  noteIconFile,
  type SteadyIcon,
  steadyIcon,
} from './icon/icon.ts'
import { watchHost } from './icon/panel-host.ts'
import type { Face } from './icon/systray.ts'
import { menu, statusLine } from './menu.ts'
import { type Backend, withFallback } from './notifications/backend.ts'
import { notifyDbus } from './notifications/dbus.ts'
import { noteOnce } from './notifications/dedupe.ts'
import { nodeNotifier } from './notifications/node-notifier.ts'
import { Notifier } from './notifications/notifier.ts'
import { crashNote, startFailureNote } from './notifications/state-notes.ts'
import { fewestAccountRows } from './view.ts'

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
  const notifier = new Notifier({
    backend: desktopBackend(),
    iconFor: ({ failure }) => noteIconFile(failure ? 'needs-you' : 'idle'),
    onAction: (action) => clicks.click(action),
    onTrouble: (reason) => {
      if (reason) say(reason)
      redraw()
    },
  })

  // Without an icon there is nothing to draw again.
  let redraw = (): void => undefined
  const clicks = await createClicks({
    home,
    show: notifier.show,
    changed: () => redraw(),
    startFailed: (why) => become(startFailed(daemon, why)),
    quit,
    say,
    signal: stopping.signal,
  })
  const notes = noteOnce({
    show: notifier.show,
    close: notifier.close,
    isOn: () => clicks.own().notifications,
    tellsLogin: clicks.tellsLogin,
  })
  let daemon = unknownDaemon
  let isFollowed = false
  let accountRows = fewestAccountRows
  let shown: SteadyIcon | undefined
  let timer: NodeJS.Timeout | undefined
  const face = (): Face => {
    const now = Date.now()
    const utcOffset = -new Date(now).getTimezoneOffset()
    const notice = notifier.trouble
    const own = { ...clicks.own(), ...(notice ? { notice } : {}) }
    const view = { daemon: daemon.view, now, utcOffset, own, accountRows }
    const steady = performance.now()
    shown = steadyIcon(shown, getIconName(view), steady)
    clearTimeout(timer)
    if (shown.lookAgainAt) timer = setTimeout(() => redraw(), shown.lookAgainAt - steady)
    return {
      rows: menu(view),
      icon: iconFile(shown.name),
      tooltip: `Doorward: ${statusLine(view)}`,
    }
  }
  const icon = await keepIcon(folder, face(), ({ action }) => {
    if (action) clicks.click(action)
  })
  // Who typed the command sees nothing of it otherwise until the panel does.
  if (process.stderr.isTTY) say('the icon is on its way to the panel; Ctrl-C ends it')
  redraw = () => icon.show(face())
  redraw()
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

  const tellOfCrash = async () => {
    if (!(await hasCrashed(home)) || !isFollowed) return
    isFollowed = false
    notes.tell(crashNote)
  }
  const startFailedWith = (why: string) => {
    // Once it has answered it is not the start that failed.
    if (daemon.lastSeen !== undefined) return
    become(startFailed(daemon, why))
    notes.tell(startFailureNote(why))
  }

  // Only now: what it loads to check answers takes as long as all that the icon needs.
  const { follow } = await import('./daemon-follower.ts')
  const following = follow(
    home,
    {
      onStatus: (status) => {
        isFollowed = true
        accountRows = Math.max(accountRows, status.providers.length)
        notes.status(status)
        become(answered(status, momentNow()))
      },
      onEvent: notes.event,
      onLost: (loss) => {
        if (isFollowed && !loss.runs) void tellOfCrash()
        // Only at the start: a daemon that was stopped later was stopped on purpose.
        if (daemon !== unknownDaemon || loss.runs) return become(failed(daemon, loss, momentNow()))
        become(starting(momentNow()))
        const isWanted = () => !stopping.signal.aborted && daemon.lastSeen === undefined
        startDaemon(home, startFailedWith, isWanted)
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
    await Promise.all([icon.stop(), following, notifier.stop()])
  }
}

/** How notes are shown on this system: on Linux with buttons, where there is a way to have them. */
const desktopBackend = (platform: NodeJS.Platform = process.platform): Backend =>
  platform === 'darwin' || platform === 'win32'
    ? nodeNotifier(platform)
    : withFallback(notifyDbus(), nodeNotifier(platform))
