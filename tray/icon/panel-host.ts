import { EventEmitter, once } from 'node:events'
import { DoorwardError } from '../../shared/errors.ts'
import { gnomeExtensionHint, hasXTray, isGnomeSession } from '../../shared/panels.ts'
import { Bus } from '../dbus/bus.ts'
import { Variant } from '../dbus/marshal.ts'
import type { TrayProgram } from './tray-binary.ts'

/*
 * A running tray program is visible only in a panel that shows icons. Modern panels are found over the
 * session bus (StatusNotifierItem), older ones over the X server (XEmbed).
 */

const watcherName = 'org.kde.StatusNotifierWatcher'
const xCheckMs = 1000
const maxTimerMs = 2 ** 31 - 1
/** How long to wait for a panel after the session bus has died. */
const reconnectMs = 15_000

type HostOptions = {
  readonly env: NodeJS.ProcessEnv
  /** Only the packaged program can use an older panel. */
  readonly program: TrayProgram
  /** How long to wait for a panel at the start; may be Infinity. */
  readonly waitMs: number
  /** Called once when there is no panel at first. */
  readonly onWaiting: () => void
  readonly signal: AbortSignal
}

/**
 * Rejects with `tray-no-host` when no panel appears in time; resolves when it is stopped. A panel that
 * disappears later may come back, so that is no error; when the session bus dies, the wait starts again.
 */
export const watchHost = async (options: HostOptions): Promise<void> => {
  const { env, signal } = options
  // Other systems always have a panel.
  if (process.platform !== 'linux') return waitForEnd(undefined, signal)
  let { waitMs } = options
  while (!signal.aborted) {
    const bus = await Bus.connect(env).catch(() => undefined)
    try {
      if (!(await waitForHost(bus, { ...options, waitMs }))) throw noHost(env)
      await waitForEnd(bus, signal)
    } finally {
      bus?.close()
    }
    waitMs = reconnectMs
  }
}

/** True as soon as there is a panel, or when stopped; false after the time limit. */
export const waitForHost = async (
  bus: Bus | undefined,
  { env, program, waitMs, onWaiting, signal }: HostOptions,
): Promise<boolean> => {
  const end = performance.now() + waitMs
  const usesX = program === 'packaged'
  const news = new EventEmitter()
  let owner: string | undefined
  await bus
    ?.onOwner(watcherName, (now) => {
      owner = now
      news.emit('news')
    })
    .catch(() => undefined)
  const registered = { interface: watcherName, member: 'StatusNotifierHostRegistered' }
  await bus?.onSignal(registered, () => news.emit('news')).catch(() => undefined)
  for (let isFirst = true; ; isFirst = false) {
    // Listen before checking, so that no change is missed in between.
    const left = Math.max(0, end - performance.now())
    const pause = AbortSignal.timeout(Math.ceil(Math.min(left, usesX ? xCheckMs : maxTimerMs)))
    const change = once(news, 'news', { signal: AbortSignal.any([signal, pause]) })
    change.catch(() => undefined)
    if (bus && owner && (await hasHost(bus, owner))) return true
    // An X server that does not answer may still have a panel.
    if (usesX && (await hasXTray(env)) !== false) return true
    if (signal.aborted) return true
    if (left === 0) return false
    if (isFirst) onWaiting()
    await change.catch(() => undefined)
  }
}

/** The watcher keeps the list of icons, and may run without a panel that shows them. */
const hasHost = async (bus: Bus, watcher: string): Promise<boolean> => {
  const answer = bus.call({
    destination: watcher,
    path: '/StatusNotifierWatcher',
    interface: 'org.freedesktop.DBus.Properties',
    member: 'Get',
    signature: 'ss',
    body: [watcherName, 'IsStatusNotifierHostRegistered'],
  })
  const [property] = await answer.catch(() => [undefined])
  return !(property instanceof Variant && property.value === false)
}

/** Waits until the bus dies or the signal. An X panel has no bus, and its icon dies with the X server. */
const waitForEnd = async (bus: Bus | undefined, signal: AbortSignal): Promise<void> => {
  if (signal.aborted) return
  const stopped = once(signal, 'abort')
  await (bus ? Promise.race([bus.closed, stopped]) : stopped)
}

const noHost = (env: NodeJS.ProcessEnv): DoorwardError => {
  const isGnome = isGnomeSession(env)
  return new DoorwardError(
    'tray-no-host',
    isGnome
      ? 'GNOME shows no tray icons without an extension'
      : 'no panel of this desktop shows tray icons',
    {
      hint: isGnome
        ? `${gnomeExtensionHint}; doorward tray --wait shows notifications without it`
        : 'start a panel with a tray (StatusNotifierItem), for example waybar or xfce4-panel; until then: doorward status; doorward tray --wait waits for one, and shows notifications',
    },
  )
}
