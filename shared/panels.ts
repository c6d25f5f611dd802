import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { getUserHome } from './home/home.ts'

export const isGnomeSession = (env: NodeJS.ProcessEnv): boolean =>
  /\bgnome\b/i.test(env['XDG_CURRENT_DESKTOP'] ?? '')

/** The package has one name everywhere, the extension does not. */
export const gnomeExtensionHint =
  'install gnome-shell-extension-appindicator (Debian, Ubuntu: sudo apt install; Fedora: sudo dnf install; Arch: sudo pacman -S), log in again and turn it on in Extensions (Debian: Ubuntu AppIndicators; else AppIndicator and KStatusNotifierItem Support)'

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
