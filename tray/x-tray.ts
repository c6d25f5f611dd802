import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type Socket, connect } from 'node:net'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { homeFor } from '../shared/home/home.ts'

/*
 * Panels of the older kind take icons over the X server (XEmbed); such a panel holds the selection
 * _NET_SYSTEM_TRAY_S<screen>. Whether there is one takes three questions to the X server:
 * https://www.x.org/releases/current/doc/xproto/x11protocol.html, appendix B;
 * https://specifications.freedesktop.org/systemtray-spec/
 */

const limitMs = 2000

/** Whether such a panel is there; undefined when the X server cannot be asked. Never throws. */
export const hasXTray = async (env: NodeJS.ProcessEnv): Promise<boolean | undefined> => {
  const display = displayOf(env['DISPLAY'] ?? '')
  if (!display) return undefined
  for (const address of display.addresses) {
    const socket = connect(address)
    socket.on('error', () => undefined)
    const timer = setTimeout(() => socket.destroy(), limitMs)
    try {
      await once(socket, 'connect')
      return await ask(socket, display.screen, await cookieOf(env, display.number))
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
  /** Where its server may listen, as `net.connect` takes it. */
  readonly addresses: readonly ({ path: string } | { host: string; port: number })[]
}

/** `:0`, `:0.1`, `unix:0`, `host:10.0`; undefined for what is none. */
export const displayOf = (text: string): Display | undefined => {
  const [, host = '', number = '', screen = '0'] = /^(.*):(\d+)(?:\.(\d+))?$/.exec(text) ?? []
  if (!number) return undefined
  const path = `/tmp/.X11-unix/X${number}`
  const addresses =
    host === '' || host === 'unix'
      ? [{ path }, { path: `\0${path}` }]
      : [{ host, port: 6000 + Number(number) }]
  return { number, screen: Number(screen), addresses }
}

const ask = async (socket: Socket, screen: number, cookie: Buffer): Promise<boolean> => {
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
  if (welcome[0] !== 1) throw new Error('the X server refuses us')

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

/** Reads so many bytes; rejects when the server ends before. */
const reader = (socket: Socket): ((length: number) => Promise<Buffer>) => {
  const chunks = socket[Symbol.asyncIterator]()
  let rest = Buffer.alloc(0)
  return async (length) => {
    while (rest.length < length) {
      const { done, value } = await chunks.next()
      if (done) throw new Error('the X server has ended')
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

/** The password of a display from the Xauthority file (Xau(3)); empty when there is none. */
const cookieOf = async (env: NodeJS.ProcessEnv, display: string): Promise<Buffer> => {
  const path = env['XAUTHORITY'] || join(homeFor(env), '.Xauthority')
  const file = await readFile(path).catch(() => Buffer.alloc(0))
  const fitting = entriesOf(file).filter(
    ({ number, name }) => name === cookieName && (number === '' || number === display),
  )
  const ours = fitting.find(({ address }) => address === hostname()) ?? fitting[0]
  return ours?.data ?? Buffer.alloc(0)
}

type Entry = { address: string; number: string; name: string; data: Buffer }

const entriesOf = (file: Buffer): Entry[] => {
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
    // A file that is cut off: what came before counts.
  }
  return entries
}
