import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { StartFailure } from '../../shared/client/spawn.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { isSafeToOpen } from '../../shared/net.ts'
import { trayAutostart } from '../../shared/service/service.ts'
import { type Action, type ConfigFile, toActionKey } from '../view.ts'
import { type Note, toBody, toFailureNote } from '../notifications/note.ts'
import { type Settings, writeSettings } from '../settings.ts'
import type { OwnState } from '../view.ts'
import { runDaemon, toStartFailure, withDaemon } from './daemon.ts'
import { copyDiagnostics } from './diagnostics.ts'
import { logIn, logOut, type OpenLogin, openLogin } from './login.ts'
import { decideMissed, openDoorward, openGuide, openPath, showEvent, showMissed } from './open.ts'

type RunnerOptions = {
  readonly home: Home
  readonly show: (note: Note) => void
  /** Called whenever `ownState` changes. */
  readonly onChange: () => void
  /** Called with why a daemon that an action started exited immediately. */
  readonly onStartFailed: (failure: StartFailure) => void
  readonly quit: () => void
  /** Aborted when the tray exits. */
  readonly signal: AbortSignal
}

const hasCode = (error: unknown, ...codes: readonly string[]): error is DoorwardError =>
  error instanceof DoorwardError && codes.includes(error.code)

/** Does nothing when no daemon runs, or when another program has its port. */
const stopDaemon = async (home: Home): Promise<void> => {
  try {
    await withDaemon(home, (client) => client.post('/daemon/shutdown'))
  } catch (error) {
    if (!hasCode(error, 'daemon-unreachable', 'daemon-foreign', 'stopping')) throw error
  }
}

const openConfiguration = async (
  home: Home,
  file: ConfigFile | undefined,
  show: (note: Note) => void,
): Promise<void> => {
  if (file === undefined) return openFirst([home.config], show)
  const path = join(home.root, file)
  const folder = file === '.env' ? home.root : home.config
  if (existsSync(path)) return openFirst([path, folder], show)
  show({ subject: 'there is no such file yet', body: toBody(path) })
  return openFirst([folder], show)
}

/** Opens the first path that some program opens. Shows the first path when none does. */
const openFirst = async (paths: readonly string[], show: (note: Note) => void): Promise<void> => {
  for (const path of paths) if (await openPath(path)) return
  show({ subject: 'no program here opens it', body: toBody(paths[0] ?? '') })
}

/** For this long after a login, the daemon's status may still report the outcome again. */
const loginEchoMs = 5000

/** Runs the actions of menu and notifications, and keeps the state that belongs to them. */
export class ActionRunner {
  readonly #options: RunnerOptions
  readonly #logins = new Map<string, OpenLogin>()
  readonly #inProgress = new Set<string>()
  /** By provider, until when an action reports the outcome of its login; milliseconds. */
  readonly #reportingUntil = new Map<string, number>()
  readonly #autostart: ReturnType<typeof trayAutostart>
  #settings: Settings
  #startAtLogin: boolean | undefined

  constructor(options: RunnerOptions, settings: Settings) {
    this.#options = options
    this.#settings = settings
    this.#autostart = trayAutostart(options.home)
    void this.#readStartAtLogin()
  }

  /** Performs the action unless the same is in progress. A failure becomes a note. */
  run(action: Action): void {
    const { show, signal } = this.#options
    this.#runOnce(action).catch((error: unknown) => {
      if (!signal.aborted) show(toFailureNote(action, error))
    })
  }

  get ownState(): OwnState {
    return {
      notifications: this.#settings.notifications,
      ...(this.#startAtLogin === undefined ? {} : { startAtLogin: this.#startAtLogin }),
      logins: this.#logins,
      inProgress: this.#inProgress,
    }
  }

  /** True while an action reports the login to this provider, so that no one else needs to. */
  isReportingLogin(provider: string): boolean {
    return (this.#reportingUntil.get(provider) ?? 0) > performance.now()
  }

  async #runOnce(action: Action): Promise<void> {
    const key = toActionKey(action)
    if (this.#inProgress.has(key)) {
      // The user may have closed the window of the login.
      const login = action.do === 'login' ? this.#logins.get(action.provider) : undefined
      if (login && action.do === 'login')
        await openLogin(action.provider, login, this.#options.show)
      return
    }
    this.#inProgress.add(key)
    this.#options.onChange()
    try {
      await this.#perform(action)
    } finally {
      this.#inProgress.delete(key)
      this.#options.onChange()
    }
  }

  /** Throws what the daemon or the desktop refuses. */
  async #perform(action: Action): Promise<void> {
    const { home, show, quit } = this.#options
    switch (action.do) {
      case 'login':
        return this.#logInOrOpenGuide(action.provider)
      case 'logout':
        return withDaemon(home, (client) => logOut(client, action.provider, show))
      case 'show-event':
        return withDaemon(home, (client) => showEvent(client, action.id, show))
      case 'open-page':
        if (isSafeToOpen(action.url) && (await openPath(action.url))) return
        return withDaemon(home, (client) => showEvent(client, action.id, show))
      case 'open-doorward':
        return withDaemon(home, (client) => openDoorward(client, show))
      case 'retry-event':
      case 'run-event-again': {
        const query = action.do === 'retry-event' ? '' : '?again=true'
        // The outcome is notified as that of any event.
        return withDaemon(home, (client) =>
          client.post(`/events/${encodeURIComponent(action.id)}/retry${query}`),
        )
      }
      case 'approve-event':
      case 'reject-event': {
        const answer = action.do === 'approve-event' ? 'approve' : 'reject'
        const body = { where: 'desktop', ...(action.digest !== '' && { digest: action.digest }) }
        return withDaemon(home, (client) =>
          client.post(`/events/${encodeURIComponent(action.id)}/${answer}`, body),
        )
      }
      case 'run-schedule':
        return withDaemon(home, (client) =>
          client.post(`/schedules/${encodeURIComponent(action.name)}/run`),
        )
      case 'show-missed':
        return withDaemon(home, (client) => showMissed(client, show))
      case 'run-missed':
        return withDaemon(home, (client) => decideMissed(client, 'run'))
      case 'skip-missed':
        return withDaemon(home, (client) => decideMissed(client, 'skip'))
      case 'set-notifications':
        return this.#setNotifications(action.on)
      case 'set-start-at-login':
        return this.#setStartAtLogin(action.on)
      case 'open-configuration':
        return openConfiguration(home, action.file, show)
      case 'open-logs':
        return openFirst(existsSync(home.log) ? [home.log, home.logs] : [home.logs], show)
      case 'open-guide':
        return openGuide(action.provider, undefined, show)
      case 'copy-diagnostics':
        return copyDiagnostics(home, show)
      case 'restart-daemon':
      case 'start-daemon':
        return this.#restartDaemon()
      case 'explain':
        return show({ subject: action.title, body: toBody(action.body) })
      case 'quit':
        return quit()
      case 'stop-and-quit':
        await stopDaemon(home)
        return quit()
    }
  }

  /** Also starts a daemon, and replaces one whose status cannot be read. */
  async #restartDaemon(): Promise<void> {
    const { home, onStartFailed } = this.#options
    try {
      await runDaemon(home, 'restart')
    } catch (error) {
      onStartFailed(toStartFailure(error, home))
      throw error
    }
  }

  async #logInOrOpenGuide(provider: string): Promise<void> {
    const { home, show, signal } = this.#options
    const setLogin = (login: OpenLogin | undefined) => this.#setLogin(provider, login)
    const attempt = () =>
      withDaemon(home, (client) => logIn(client, provider, { show, setLogin, signal }))
    try {
      await attempt().catch(async (error: unknown) => {
        if (!hasCode(error, 'stopping')) throw error
        // A stopping daemon takes no new login; its successor does.
        await this.#restartDaemon()
        await attempt()
      })
    } catch (error) {
      if (!hasCode(error, 'client-unknown')) throw error
      await openGuide(provider, error.hint, show)
    }
  }

  #setLogin(provider: string, login: OpenLogin | undefined): void {
    if (login) this.#logins.set(provider, login)
    else this.#logins.delete(provider)
    this.#reportingUntil.set(provider, login ? Infinity : performance.now() + loginEchoMs)
    this.#options.onChange()
  }

  async #setNotifications(notifications: boolean): Promise<void> {
    const settings = { ...this.#settings, notifications }
    await writeSettings(this.#options.home, settings)
    this.#settings = settings
  }

  async #setStartAtLogin(on: boolean): Promise<void> {
    try {
      await (on ? this.#autostart.turnOn() : this.#autostart.turnOff())
    } finally {
      await this.#readStartAtLogin()
    }
  }

  async #readStartAtLogin(): Promise<void> {
    this.#startAtLogin = await this.#autostart.isOn().catch(() => undefined)
    this.#options.onChange()
  }
}
