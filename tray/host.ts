import { EventEmitter, once } from 'node:events'
import { DoorwardError } from '../shared/errors.ts'
import { type Bus, connectBus } from './dbus/bus.ts'
import { Variant } from './dbus/variant.ts'
import type { TrayProgram } from './tray-program.ts'
import { hasXTray } from './x-tray.ts'

/*
 * That the tray program runs does not mean that its icon can be seen: that takes a panel. The modern
 * kind is asked for over the session bus (StatusNotifierItem), the older one over the X server.
 */

const watcherName = 'org.kde.StatusNotifierWatcher'
const askXEveryMs = 1000
const longestMs = 2 ** 31 - 1
/** How long a panel may take when the session bus has died and, perhaps, come back. */
const againMs = 15_000

export type HostOptions = {
  readonly env: NodeJS.ProcessEnv
  /** Only the packaged program can use a panel of the older kind. */
  readonly program: TrayProgram
  /** How long to wait for a panel at the start; Infinity waits for ever. */
  readonly waitMs: number
  /** Told once when there is no panel at first. */
  readonly onWaiting: () => void
  readonly signal: AbortSignal
}

/**
 * Rejects with `tray-no-host` when no panel came in time; resolves when it is stopped. A panel that
 * goes later may come back, so nothing is said of it; when the session bus itself dies, the wait
 * begins anew.
 */
export const watchHost = async (options: HostOptions): Promise<void> => {
  const { env, signal } = options
  // The other systems have one at all times.
  if (process.platform !== 'linux') return untilEnded(undefined, signal)
  let { waitMs } = options
  while (!signal.aborted) {
    const bus = await connectBus(env).catch(() => undefined)
    try {
      if (!(await untilHost(bus, { ...options, waitMs }))) throw noHost(env)
      await untilEnded(bus, signal)
    } finally {
      bus?.close()
    }
    waitMs = againMs
  }
}

/** True as soon as there is a panel, or when it is stopped; false when the time is over. */
export const untilHost = async (
  bus: Bus | undefined,
  { env, program, waitMs, onWaiting, signal }: HostOptions,
): Promise<boolean> => {
  const end = performance.now() + waitMs
  const asksX = program === 'packaged'
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
    // Before the look, so that nothing happens between.
    const left = Math.max(0, end - performance.now())
    const pause = AbortSignal.timeout(Math.ceil(Math.min(left, asksX ? askXEveryMs : longestMs)))
    const change = once(news, 'news', { signal: AbortSignal.any([signal, pause]) })
    change.catch(() => undefined)
    if (bus && owner && (await hasHost(bus, owner))) return true
    // An X server that cannot be asked may well have one.
    if (asksX && (await hasXTray(env)) !== false) return true
    if (signal.aborted) return true
    if (left === 0) return false
    if (isFirst) onWaiting()
    await change.catch(() => undefined)
  }
}

/** A watcher keeps the list of icons; it may run without a panel that shows them. */
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

/** Until the bus dies, or it is stopped. Without a bus the panel is of the X server, and ends with it. */
const untilEnded = async (bus: Bus | undefined, signal: AbortSignal): Promise<void> => {
  if (signal.aborted) return
  const stopped = once(signal, 'abort')
  await (bus ? Promise.race([bus.closed, stopped]) : stopped)
}

const noHost = (env: NodeJS.ProcessEnv): DoorwardError => {
  const isGnome = /\bgnome\b/i.test(env['XDG_CURRENT_DESKTOP'] ?? '')
  return new DoorwardError(
    'tray-no-host',
    isGnome
      ? 'GNOME shows no tray icons without an extension'
      : 'no panel of this desktop shows tray icons',
    {
      hint: isGnome
        ? 'install gnome-shell-extension-appindicator (Debian, Ubuntu: sudo apt install; Fedora: sudo dnf install; Arch: sudo pacman -S), log in again and turn it on in Extensions; until then: doorward status'
        : 'start a panel with a tray (StatusNotifierItem), for example waybar or xfce4-panel; until then: doorward status; doorward tray --wait waits for one',
    },
  )
}
