import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { trayAutostart } from '../../shared/service/service.ts'
import { type Action, type ConfigFile, keyOfAction } from '../action.ts'
import { toBody, toFailureNote, type Note, toTitle } from '../notifications/note.ts'
import { readSettings, writeSettings } from '../settings.ts'
import type { OwnState } from '../view.ts'
import { restartDaemon, startAgain } from './daemon.ts'
import { copyDiagnostics } from './diagnostics.ts'
import { logIn, logOut, type OpenLogin, openLogin } from './login.ts'
import { openGuide, openPath, showEvent } from './open.ts'
import { withDaemon } from './with-daemon.ts'

type Surroundings = {
  readonly home: Home
  readonly show: (note: Note) => void
  /** Hears what a login waits for, and undefined when it waits no more. */
  readonly waits: (provider: string, login: OpenLogin | undefined) => void
  readonly setNotifications: (on: boolean) => Promise<void>
  readonly setStartAtLogin: (on: boolean) => Promise<void>
  /** Hears why the daemon that was started ended at once. */
  readonly startFailed: (why: string) => void
  readonly quit: () => void
  /** Aborted when the tray ends. */
  readonly signal: AbortSignal
}

/** Does what a click asks for. Throws what the daemon or the desktop refuses. */
const act = async (action: Action, around: Surroundings): Promise<void> => {
  const { home, show, quit } = around
  switch (action.do) {
    case 'login':
      return logInOrExplain(action.provider, around)
    case 'logout':
      return withDaemon(home, (client) => logOut(client, action.provider, show))
    case 'show-event':
      return withDaemon(home, (client) => showEvent(client, action.id, show))
    case 'retry-event':
      // How it ends is told when it ends, as of any event.
      return withDaemon(home, (client) =>
        client.post(`/events/${encodeURIComponent(action.id)}/retry`),
      )
    case 'set-notifications':
      return around.setNotifications(action.on)
    case 'set-start-at-login':
      return around.setStartAtLogin(action.on)
    case 'open-configuration':
      return openConfiguration(home, action.file, show)
    case 'open-logs':
      return openOr(existsSync(home.log) ? [home.log, home.logs] : [home.logs], show)
    case 'open-guide':
      return openGuide(action.provider, undefined, show)
    case 'copy-diagnostics':
      return copyDiagnostics(home, show)
    case 'restart-daemon':
      return restartDaemon(home, around.startFailed)
    case 'start-daemon':
      return startAgain(home, around.startFailed)
    case 'explain':
      return show({ title: toTitle(action.title), body: toBody(action.body) })
    case 'quit':
      return quit()
    case 'stop-and-quit':
      await stopDaemon(home)
      return quit()
  }
}

const logInOrExplain = async (provider: string, around: Surroundings) => {
  const { home, show, signal, startFailed } = around
  const waits = (login: OpenLogin | undefined) => around.waits(provider, login)
  const attempt = () =>
    withDaemon(home, (client) => logIn(client, provider, { show, waits, signal }))
  try {
    await attempt().catch(async (error: unknown) => {
      if (!hasCode(error, 'stopping')) throw error
      // It finishes what it has accepted: the next one takes the login.
      await startAgain(home, startFailed)
      await attempt()
    })
  } catch (error) {
    if (!hasCode(error, 'client-unknown')) throw error
    await openGuide(provider, error.hint, show)
  }
}

const hasCode = (error: unknown, ...codes: readonly string[]): error is DoorwardError =>
  error instanceof DoorwardError && codes.includes(error.code)

/** None that runs is stopped already; another program in its place is none of ours to stop. */
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
  if (file === undefined) return openOr([home.config], show)
  const path = join(home.root, file)
  const folder = file === '.env' ? home.root : home.config
  // A file manager may hide it: its name has to be said.
  if (!existsSync(path)) show({ title: toTitle('there is no such file yet'), body: toBody(path) })
  return openOr(existsSync(path) ? [path, folder] : [folder], show)
}

/** Opens the first that some program opens. Where none does, the path is the next best thing. */
const openOr = async (paths: readonly string[], show: (note: Note) => void): Promise<void> => {
  for (const path of paths) if (await openPath(path)) return
  show({ title: toTitle('no program here opens it'), body: toBody(paths[0] ?? '') })
}

/** Takes the clicks of a tray, and knows what they have set going. */
export type Clicks = {
  /** Does what it asks for, unless that is under way already. A failure becomes a note. */
  readonly click: (action: Action) => void
  readonly own: () => OwnState
  /** True while how a login ends is told in answer to a click, and need not be told twice. */
  readonly tellsLogin: (provider: string) => boolean
}

type ClickParts = {
  readonly home: Home
  /** Shows the answer to a click, also where notifications are off: it was asked for. */
  readonly show: (note: Note) => void
  /** Called whenever `own` answers something else. */
  readonly changed: () => void
  /** The daemon that a click has started ended at once; why, in one line. */
  readonly startFailed: (why: string) => void
  readonly quit: () => void
  /** Tells whoever started the tray from a terminal. */
  readonly say: (line: string) => void
  /** Aborted when the tray ends. */
  readonly signal: AbortSignal
}

/** The daemon's status may come this long after the answer that tells the same, in milliseconds. */
const echoMs = 5000

/** Reads the settings and begins to take clicks. */
export const createClicks = async (parts: ClickParts): Promise<Clicks> => {
  const { home, show, changed, startFailed, quit, say, signal } = parts
  let settings = await readSettings(home, say)
  let startAtLogin: boolean | undefined
  const atLogin = trayAutostart(home)
  const logins = new Map<string, OpenLogin>()
  const underWay = new Set<string>()
  /** Until when a login of a provider is told by its click, milliseconds. */
  const toldUntil = new Map<string, number>()

  const lookAtLogin = async (): Promise<void> => {
    startAtLogin = await atLogin.isOn().catch(() => undefined)
    changed()
  }
  void lookAtLogin()

  const waits = (provider: string, login: OpenLogin | undefined): void => {
    if (login) logins.set(provider, login)
    else logins.delete(provider)
    toldUntil.set(provider, login ? Infinity : performance.now() + echoMs)
    changed()
  }

  const surroundings = {
    home,
    show,
    waits,
    setNotifications: async (notifications: boolean) => {
      await writeSettings(home, { ...settings, notifications })
      settings = { ...settings, notifications }
    },
    setStartAtLogin: async (on: boolean) => {
      try {
        await (on ? atLogin.turnOn() : atLogin.turnOff())
      } finally {
        await lookAtLogin()
      }
    },
    startFailed,
    quit,
    signal,
  }

  const run = async (action: Action): Promise<void> => {
    const key = keyOfAction(action)
    if (underWay.has(key)) {
      // Perhaps its window was closed.
      const waiting = action.do === 'login' ? logins.get(action.provider) : undefined
      if (waiting && action.do === 'login') await openLogin(action.provider, waiting, show)
      return
    }
    underWay.add(key)
    changed()
    try {
      await act(action, surroundings)
    } finally {
      underWay.delete(key)
      changed()
    }
  }

  return {
    click: (action) => {
      run(action).catch((error: unknown) => {
        if (!signal.aborted) show(toFailureNote(action, error))
      })
    },
    own: () => ({
      notifications: settings.notifications,
      ...(startAtLogin === undefined ? {} : { startAtLogin }),
      logins,
      underWay,
    }),
    tellsLogin: (provider) => (toldUntil.get(provider) ?? 0) > performance.now(),
  }
}
