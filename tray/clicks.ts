import type { Home } from '../shared/home/home.ts'
import { trayAtLogin } from '../shared/service/service.ts'
import { type Action, keyOfAction } from './action.ts'
import { failureNoteOf } from './failure-note.ts'
import { type OpenLogin, openLogin } from './login.ts'
import type { Note } from './note.ts'
import { readSettings, writeSettings } from './settings.ts'
import type { OwnState } from './view.ts'

/** Takes the clicks of a tray, and knows what they have set going. */
export type Clicks = {
  /** Does what it asks for, unless that is under way already. A failure becomes a note. */
  readonly click: (action: Action) => void
  readonly own: () => OwnState
  /** True while how a login ends is told in answer to a click, and need not be told twice. */
  readonly tellsLogin: (provider: string) => boolean
}

export type ClickParts = {
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
  const atLogin = trayAtLogin(home)
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
      // Loaded by the first click, so that the icon is there sooner.
      const { act } = await import('./act.ts')
      await act(action, surroundings)
    } finally {
      underWay.delete(key)
      changed()
    }
  }

  return {
    click: (action) => {
      run(action).catch((error: unknown) => {
        if (!signal.aborted) show(failureNoteOf(action, error))
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
