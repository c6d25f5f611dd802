import { EventEmitter, once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DoorwardError } from '../../shared/errors.ts'
import { getUserHome } from '../../shared/home/home.ts'
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

/*
 * Older panels take icons over the X server (XEmbed), and own the selection _NET_SYSTEM_TRAY_S<screen>.
 * Finding its owner takes three requests to the X server:
 * https://www.x.org/releases/current/doc/xproto/x11protocol.html, appendix B;
 * https://specifications.freedesktop.org/systemtray-spec/
 */

const limitMs = 2000

/** Whether there is an older panel; undefined when the X server does not answer. Never throws. */
export const hasXTray = async (env: NodeJS.ProcessEnv): Promise<boolean | undefined> => {
  const display = parseDisplay(env['DISPLAY'] ?? '')
  if (!display) return undefined
  for (const address of display.addresses) {
    const socket = connect(address)
    socket.on('error', () => undefined)
    const timer = setTimeout(() => socket.destroy(), limitMs)
    try {
      await once(socket, 'connect')
      return await queryPanel(socket, display.screen, await readCookie(env, display.number))
    } catch {
      continue
    } finally {
      clearTimeout(timer)
      socket.destroy()
    }
  }
  return undefined
}

type Display = {
  readonly number: string
  readonly screen: number
  /** Where its server may listen, as options of `net.connect`. */
  readonly addresses: readonly ({ path: string } | { host: string; port: number })[]
}

/** Parses `:0`, `:0.1`, `unix:0` or `host:10.0`; undefined otherwise. */
export const parseDisplay = (text: string): Display | undefined => {
  const [, host = '', number = '', screen = '0'] = /^(.*):(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (!number) return undefined
  const path = `/tmp/.X11-unix/X${number}`
  const addresses =
    host === '' || host === 'unix'
      ? [{ path }, { path: `\0${path}` }]
      : [{ host, port: 6000 + Number(number) }]
  return { number, screen: Number(screen), addresses }
}

const queryPanel = async (socket: Socket, screen: number, cookie: Buffer): Promise<boolean> => {
  const read = reader(socket)
  const name = cookie.length > 0 ? Buffer.from(cookieName) : Buffer.alloc(0)
  const hello = Buffer.alloc(12)
  hello.write('l')
  hello.writeUInt16LE(11, 2)
  hello.writeUInt16LE(name.length, 6)
  hello.writeUInt16LE(cookie.length, 8)
  socket.write(Buffer.concat([hello, padded(name), padded(cookie)]))
  const welcome = await read(8)
  await read(welcome.readUInt16LE(6) * 4)
  if (welcome[0] !== 1) throw new Error('the X server refused the connection')

  const atomName = Buffer.from(`_NET_SYSTEM_TRAY_S${screen}`)
  const internAtom = Buffer.alloc(8)
  internAtom.writeUInt8(16, 0)
  internAtom.writeUInt8(1, 1)
  internAtom.writeUInt16LE(2 + padded(atomName).length / 4, 2)
  internAtom.writeUInt16LE(atomName.length, 4)
  socket.write(Buffer.concat([internAtom, padded(atomName)]))
  const atom = (await read(32)).readUInt32LE(8)
  if (atom === 0) return false

  const getOwner = Buffer.alloc(8)
  getOwner.writeUInt8(23, 0)
  getOwner.writeUInt16LE(2, 2)
  getOwner.writeUInt32LE(atom, 4)
  socket.write(getOwner)
  return (await read(32)).readUInt32LE(8) !== 0
}

/** Reads exactly `length` bytes; rejects when the connection ends before. */
const reader = (socket: Socket): ((length: number) => Promise<Buffer>) => {
  const chunks = socket[Symbol.asyncIterator]()
  let rest = Buffer.alloc(0)
  return async (length) => {
    while (rest.length < length) {
      const { done, value } = await chunks.next()
      if (done) throw new Error('the X server closed the connection')
      rest = Buffer.concat([rest, value as Buffer])
    }
    const taken = rest.subarray(0, length)
    rest = rest.subarray(length)
    return taken
  }
}

const padded = (bytes: Buffer): Buffer =>
  Buffer.concat([bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])

const cookieName = 'MIT-MAGIC-COOKIE-1'

/** The cookie of a display in the Xauthority file (Xau(3)); empty without one. */
const readCookie = async (env: NodeJS.ProcessEnv, display: string): Promise<Buffer> => {
  const path = env['XAUTHORITY'] || join(getUserHome(env), '.Xauthority')
  const file = await readFile(path).catch(() => Buffer.alloc(0))
  const fitting = parseEntries(file).filter(
    ({ number, name }) => name === cookieName && (number === '' || number === display),
  )
  const ours = fitting.find(({ address }) => address === hostname()) ?? fitting[0]
  return ours?.data ?? Buffer.alloc(0)
}

type Entry = { address: string; number: string; name: string; data: Buffer }

const parseEntries = (file: Buffer): Entry[] => {
  const entries: Entry[] = []
  let at = 0
  const part = (): Buffer => {
    const length = file.readUInt16BE(at)
    at += 2 + length
    return file.subarray(at - length, at)
  }
  try {
    while (at < file.length) {
      at += 2
      const [address, number, name] = [part(), part(), part()].map(String)
      entries.push({ address: address ?? '', number: number ?? '', name: name ?? '', data: part() })
    }
  } catch {
    // The file is truncated; use the entries before that.
  }
  return entries
}
