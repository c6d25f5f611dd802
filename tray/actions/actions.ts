import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { StartFailure } from '../../shared/client/spawn.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { trayAutostart } from '../../shared/service/service.ts'
import { type Action, type ConfigFile, toActionKey } from '../action.ts'
import { type Note, toBody, toFailureNote, toTitle } from '../notifications/note.ts'
import { type Settings, writeSettings } from '../settings.ts'
import type { OwnState } from '../view.ts'
import { runDaemon, toStartFailure, withDaemon } from './daemon.ts'
import { copyDiagnostics } from './diagnostics.ts'
import { decideMissed, showEvent, showMissed } from './events.ts'
import { logIn, logOut, type OpenLogin, openLogin } from './login.ts'
import { openGuide, openPath } from './open.ts'

type ActionContext = {
  readonly home: Home
  readonly show: (note: Note) => void
  /** Called with a login that waits for its user, and with undefined when it waits no longer. */
  readonly setLogin: (provider: string, login: OpenLogin | undefined) => void
  readonly setNotifications: (on: boolean) => Promise<void>
  readonly setStartAtLogin: (on: boolean) => Promise<void>
  /** Called with why a daemon that an action started exited immediately. */
  readonly onStartFailed: (failure: StartFailure) => void
  readonly quit: () => void
  /** Aborted when the tray exits. */
  readonly signal: AbortSignal
}

/** Performs an action. Throws what the daemon or the desktop refuses. */
const perform = async (action: Action, context: ActionContext): Promise<void> => {
  const { home, show, quit } = context
  switch (action.do) {
    case 'login':
      return logInOrOpenGuide(action.provider, context)
    case 'logout':
      return withDaemon(home, (client) => logOut(client, action.provider, show))
    case 'show-event':
      return withDaemon(home, (client) => showEvent(client, action.id, show))
    case 'retry-event':
    case 'run-event-again': {
      const query = action.do === 'retry-event' ? '' : '?again=true'
      // The outcome is notified as that of any event.
      return withDaemon(home, (client) =>
        client.post(`/events/${encodeURIComponent(action.id)}/retry${query}`),
      )
    }
    case 'show-missed':
      return withDaemon(home, (client) => showMissed(client, show))
    case 'run-missed':
      return withDaemon(home, (client) => decideMissed(client, 'run'))
    case 'skip-missed':
      return withDaemon(home, (client) => decideMissed(client, 'skip'))
    case 'set-notifications':
      return context.setNotifications(action.on)
    case 'set-start-at-login':
      return context.setStartAtLogin(action.on)
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
      return restartDaemon(context)
    case 'explain':
      return show({ title: toTitle(action.title), body: toBody(action.body) })
    case 'quit':
      return quit()
    case 'stop-and-quit':
      await stopDaemon(home)
      return quit()
  }
}

/** Also starts a daemon, and replaces one whose status cannot be read. */
const restartDaemon = async ({ home, onStartFailed }: ActionContext): Promise<void> => {
  try {
    await runDaemon(home, 'restart')
  } catch (error) {
    onStartFailed(toStartFailure(error, home))
    throw error
  }
}

const logInOrOpenGuide = async (provider: string, context: ActionContext) => {
  const { home, show, signal } = context
  const setLogin = (login: OpenLogin | undefined) => context.setLogin(provider, login)
  const attempt = () =>
    withDaemon(home, (client) => logIn(client, provider, { show, setLogin, signal }))
  try {
    await attempt().catch(async (error: unknown) => {
      if (!hasCode(error, 'stopping')) throw error
      // A stopping daemon takes no new login; its successor does.
      await restartDaemon(context)
      await attempt()
    })
  } catch (error) {
    if (!hasCode(error, 'client-unknown')) throw error
    await openGuide(provider, error.hint, show)
  }
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
  show({ title: toTitle('there is no such file yet'), body: toBody(path) })
  return openFirst([folder], show)
}

/** Opens the first path that some program opens. Shows the first path when none does. */
const openFirst = async (paths: readonly string[], show: (note: Note) => void): Promise<void> => {
  for (const path of paths) if (await openPath(path)) return
  show({ title: toTitle('no program here opens it'), body: toBody(paths[0] ?? '') })
}

type RunnerOptions = Pick<ActionContext, 'home' | 'show' | 'onStartFailed' | 'quit' | 'signal'> & {
  /** Called whenever `ownState` changes. */
  readonly onChange: () => void
}

/** For this long after a login, the daemon's status may still report the outcome again. */
const loginEchoMs = 5000

/** Runs the actions of menu and notifications, and keeps the state that belongs to them. */
export class ActionRunner {
  readonly #options: RunnerOptions
  readonly #context: ActionContext
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
    this.#context = {
      ...options,
      setLogin: (provider, login) => this.#setLogin(provider, login),
      setNotifications: async (on) => this.#setNotifications(on),
      setStartAtLogin: async (on) => this.#setStartAtLogin(on),
    }
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
      await perform(action, this.#context)
    } finally {
      this.#inProgress.delete(key)
      this.#options.onChange()
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
