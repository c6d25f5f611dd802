import type { Status } from '../shared/api/api.ts'
import type { StartFailure } from '../shared/client/spawn.ts'
import type { Home } from '../shared/home/home.ts'
import { ActionRunner } from './actions/actions.ts'
import { runDaemon, toStartFailure } from './actions/daemon.ts'
import {
  afterLoss,
  afterStart,
  afterStartFailure,
  afterStatus,
  type ConnectionLoss,
  type DaemonState,
  hasCrashed,
  initialDaemonState,
  momentNow,
} from './daemon-state.ts'
import {
  getIconName,
  iconFile,
  keepIcon,
  type KeptIcon,
  noteIconFile,
  type SteadyIcon,
  steadyIcon,
} from './icon/icon.ts'
import { watchHost } from './icon/panel-host.ts'
import type { TrayState } from './icon/systray.ts'
import { menu, statusLine } from './menu.ts'
import { type Announcer, createAnnouncer } from './notifications/announcer.ts'
import { type Backend, withFallback } from './notifications/backend.ts'
import { notifyDbus } from './notifications/dbus.ts'
import { nodeNotifier } from './notifications/node-notifier.ts'
import { Notifier } from './notifications/notifier.ts'
import { crashNote, startFailureNote } from './notifications/state-notes.ts'
import { readSettings, type Settings } from './settings.ts'
import { maxScheduleRows, minAccountRows } from './view.ts'

/*
 * The tray from start to exit: show an icon, follow the daemon, and build the whole menu again after
 * each change. The tray stores nothing that the daemon knows.
 */

/**
 * Runs the tray of a home until Quit or a signal; `folder` is private and gets the tray program;
 * `hostWaitMs` is how long to wait for a panel that shows icons. Throws the tray errors when no icon
 * can be shown, at the start or when the desktop goes away.
 */
export const runTray = async (home: Home, folder: string, hostWaitMs: number): Promise<void> => {
  const tray = new Tray(home, await readSettings(home, say))
  await tray.run(folder, hostWaitMs)
}

const say = (line: string): void => {
  process.stderr.write(`doorward tray: ${line}\n`)
}

class Tray {
  readonly #home: Home
  readonly #stopping = new AbortController()
  readonly #notifier: Notifier
  readonly #actions: ActionRunner
  readonly #announcer: Announcer
  #icon: KeptIcon | undefined
  #shownIcon: SteadyIcon | undefined
  #redrawTimer: NodeJS.Timeout | undefined
  #daemon: DaemonState = initialDaemonState
  #isConnected = false
  #accountRows = minAccountRows
  #scheduleRows = 0

  constructor(home: Home, settings: Settings) {
    this.#home = home
    this.#notifier = new Notifier({
      backend: desktopBackend(),
      iconFor: ({ failure }) => noteIconFile(failure ? 'needs-you' : 'idle'),
      onAction: (action) => this.#actions.run(action),
      onTrouble: (reason) => {
        if (reason) say(reason)
        this.#redraw()
      },
    })
    const options = {
      home,
      show: this.#notifier.show,
      onChange: () => this.#redraw(),
      onStartFailed: (failure: StartFailure) =>
        this.#setDaemon(afterStartFailure(this.#daemon, failure)),
      quit: this.#quit,
      signal: this.#stopping.signal,
    }
    const actions = new ActionRunner(options, settings)
    this.#actions = actions
    this.#announcer = createAnnouncer({
      show: this.#notifier.show,
      close: this.#notifier.close,
      isOn: () => actions.ownState.notifications,
      isReportingLogin: (provider) => actions.isReportingLogin(provider),
    })
  }

  async run(folder: string, hostWaitMs: number): Promise<void> {
    const { signal } = this.#stopping
    process.once('SIGTERM', this.#quit).once('SIGINT', this.#quit).once('SIGHUP', this.#quit)
    const icon = await keepIcon(folder, this.#nextState(), ({ action }) => {
      if (action) this.#actions.run(action)
    })
    this.#icon = icon
    // Without this line a terminal shows nothing until the panel draws the icon.
    if (process.stderr.isTTY) say('the icon is on its way to the panel; Ctrl-C quits')
    this.#redraw()
    const hosting = watchHost({
      env: process.env,
      program: icon.program,
      waitMs: hostWaitMs,
      onWaiting: () => say('waiting for a panel that shows tray icons'),
      signal,
    })
    // Imported after the icon is shown, as it takes as long to load as everything before.
    const { follow } = await import('./daemon-follower.ts')
    const follower = {
      onStatus: (status: Status) => this.#onStatus(status),
      onEvent: this.#announcer.event,
      onLost: (loss: ConnectionLoss) => this.#onLost(loss),
    }
    const following = follow(this.#home, follower, signal)
    try {
      await Promise.race([icon.lost, hosting, following])
    } finally {
      this.#quit()
      clearTimeout(this.#redrawTimer)
      this.#announcer.stop()
      await Promise.all([icon.stop(), following, this.#notifier.stop()])
    }
  }

  readonly #quit = (): void => this.#stopping.abort()

  #onStatus(status: Status): void {
    this.#isConnected = true
    this.#accountRows = Math.max(this.#accountRows, status.providers.length)
    const schedules = Math.min(status.schedules?.length ?? 0, maxScheduleRows)
    this.#scheduleRows = Math.max(this.#scheduleRows, schedules)
    this.#announcer.status(status)
    this.#setDaemon(afterStatus(status, momentNow()))
  }

  #onLost(loss: ConnectionLoss): void {
    if (this.#isConnected && !loss.isRunning) void this.#reportCrash()
    // Only the first time: later a missing daemon was stopped on purpose or has crashed.
    if (this.#daemon !== initialDaemonState || loss.isRunning)
      return this.#setDaemon(afterLoss(this.#daemon, loss, momentNow()))
    this.#setDaemon(afterStart(momentNow()))
    runDaemon(this.#home, 'start').catch((error: unknown) =>
      this.#onStartFailed(toStartFailure(error, this.#home)),
    )
  }

  #onStartFailed(failure: StartFailure): void {
    // A daemon that has answered did start.
    if (this.#daemon.lastSeen !== undefined) return
    this.#setDaemon(afterStartFailure(this.#daemon, failure))
    this.#announcer.show(startFailureNote(failure))
  }

  async #reportCrash(): Promise<void> {
    if (!(await hasCrashed(this.#home)) || !this.#isConnected) return
    this.#isConnected = false
    this.#announcer.show(crashNote)
  }

  #setDaemon(daemon: DaemonState): void {
    this.#daemon = daemon
    this.#redraw()
  }

  /** Does nothing until there is an icon. */
  #redraw(): void {
    this.#icon?.show(this.#nextState())
  }

  #nextState(): TrayState {
    const now = Date.now()
    const { trouble } = this.#notifier
    const view = {
      daemon: this.#daemon.view,
      now,
      utcOffset: -new Date(now).getTimezoneOffset(),
      own: { ...this.#actions.ownState, ...(trouble ? { trouble } : {}) },
      accountRows: this.#accountRows,
      scheduleRows: this.#scheduleRows,
    }
    const steadyNow = performance.now()
    const shown = steadyIcon(this.#shownIcon, getIconName(view), steadyNow)
    this.#shownIcon = shown
    clearTimeout(this.#redrawTimer)
    if (shown.nextAt) this.#redrawTimer = setTimeout(() => this.#redraw(), shown.nextAt - steadyNow)
    return {
      rows: menu(view),
      icon: iconFile(shown.name),
      tooltip: `Doorward: ${statusLine(view)}`,
    }
  }
}

/** The session bus on Linux, for it has buttons; node-notifier elsewhere and without a bus. */
const desktopBackend = (platform: NodeJS.Platform = process.platform): Backend =>
  platform === 'darwin' || platform === 'win32'
    ? nodeNotifier(platform)
    : withFallback(notifyDbus(), nodeNotifier(platform))
