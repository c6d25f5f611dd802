import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { endianness } from 'node:os'

/** One end of a connection. */
export type Endpoint = { readonly address: string; readonly port: number }

/**
 * The user of the program at the other end of a loopback connection, from the kernel's tables (proc(5),
 * `/proc/net/tcp`). `unlisted` when they have our end only; undefined where there are no such tables.
 */
export const userOfPeer = async (socket: Socket): Promise<number | 'unlisted' | undefined> => {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  if (remoteAddress === undefined || remotePort === undefined) return undefined
  if (localAddress === undefined || localPort === undefined) return undefined
  return findUser(
    await readTables(),
    { address: remoteAddress, port: remotePort },
    { address: localAddress, port: localPort },
  )
}

const readTables = async (): Promise<string> => {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  )
  return tables.join('\n')
}

/** False when another user's program listens on this port. */
export const isListenerOurs = async (port: number): Promise<boolean> => {
  const end = `:${toHexPort(port)}`
  for (const line of (await readTables()).split('\n')) {
    const [, local = '', , state, , , , user] = line.trim().split(/\s+/)
    const isListening = state === '0A' && local.endsWith(end)
    if (isListening && Number(user) !== process.getuid?.()) return false
  }
  return true
}

/** The user of `peer` in the text of the tables, for its connection to `own`. */
export const findUser = (
  tables: string,
  peer: Endpoint,
  own: Endpoint,
  order: 'BE' | 'LE' = endianness(),
): number | 'unlisted' | undefined => {
  const peerNames = formatEndpoint(peer, order)
  const ownNames = formatEndpoint(own, order)
  let isListed = false
  for (const line of tables.split('\n')) {
    const [, local = '', remote = '', , , , , user = ''] = line.trim().split(/\s+/)
    if (peerNames.includes(local) && ownNames.includes(remote) && /^\d+$/.test(user))
      return Number(user)
    isListed ||= ownNames.includes(local) && peerNames.includes(remote)
  }
  return isListed ? 'unlisted' : undefined
}

/** As the tables write it: IPv4, and IPv4 within IPv6, since either program may use either. */
const formatEndpoint = ({ address, port }: Endpoint, order: 'BE' | 'LE'): string[] => {
  const format = (...words: number[]): string =>
    `${words.map((word) => toHexWord(word, order)).join('')}:${toHexPort(port)}`
  if (address === '::1') return [format(0, 0, 0, 1)]
  const bytes = address.replace(/^::ffff:/, '').split('.')
  const v4 = Buffer.from(bytes.map(Number)).readUInt32BE()
  return [format(v4), format(0, 0, 0xffff, v4)]
}

const toHexPort = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')

/** Four bytes, which the kernel prints as a number in its own byte order. */
const toHexWord = (value: number, order: 'BE' | 'LE'): string => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  if (order === 'LE') bytes.reverse()
  return bytes.toString('hex').toUpperCase()
}
