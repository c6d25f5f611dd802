import { readFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { endianness } from 'node:os'

/** Where one end of a connection is, as a socket says it. */
export type End = { readonly address: string; readonly port: number }

/**
 * The user whose program holds the other end of a loopback connection, by the kernel's tables (proc(5),
 * `/proc/net/tcp`). `unlisted` when they know our end only; undefined where there are no such tables.
 */
export const userOfPeer = async (socket: Socket): Promise<number | 'unlisted' | undefined> => {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  if (remoteAddress === undefined || remotePort === undefined) return undefined
  if (localAddress === undefined || localPort === undefined) return undefined
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  )
  return userIn(
    tables.join('\n'),
    { address: remoteAddress, port: remotePort },
    { address: localAddress, port: localPort },
  )
}

/** Looks up in the text of the tables who holds `peer` of a connection to `ours`. */
export const userIn = (
  tables: string,
  peer: End,
  ours: End,
  order: 'BE' | 'LE' = endianness(),
): number | 'unlisted' | undefined => {
  const peerNames = getNames(peer, order)
  const ourNames = getNames(ours, order)
  let isListed = false
  for (const line of tables.split('\n')) {
    const [, local = '', remote = '', , , , , user = ''] = line.trim().split(/\s+/)
    if (peerNames.includes(local) && ourNames.includes(remote) && /^\d+$/.test(user))
      return Number(user)
    isListed ||= ourNames.includes(local) && peerNames.includes(remote)
  }
  return isListed ? 'unlisted' : undefined
}

/** An end as the tables write it, in IPv4 and as IPv4 within IPv6, since either program may use either. */
const getNames = ({ address, port }: End, order: 'BE' | 'LE'): string[] => {
  const inHex = port.toString(16).toUpperCase().padStart(4, '0')
  const written = (...words: number[]): string =>
    `${words.map((word) => toHexWord(word, order)).join('')}:${inHex}`
  if (address === '::1') return [written(0, 0, 0, 1)]
  const bytes = address.replace(/^::ffff:/, '').split('.')
  const v4 = Buffer.from(bytes.map(Number)).readUInt32BE()
  return [written(v4), written(0, 0, 0xffff, v4)]
}

/** Four bytes, which the kernel prints as one number of its own byte order. */
const toHexWord = (value: number, order: 'BE' | 'LE'): string => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  if (order === 'LE') bytes.reverse()
  return bytes.toString('hex').toUpperCase()
}
