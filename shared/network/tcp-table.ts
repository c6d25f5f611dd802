// Not 'node:fs/promises': loading it would cost every command a millisecond.
import { promises as files } from 'node:fs'
import type { Socket } from 'node:net'

/** A socket in the kernel's tables, proc_net_tcp(5). */
export type TcpSocket = {
  /** Address and port in hexadecimal, as the kernel writes them. */
  readonly local: string
  readonly remote: string
  readonly isListening: boolean
  readonly user: number
  readonly inode: string
}

/** All TCP sockets of this machine; none on systems without such tables. */
export const readTcpSockets = async (): Promise<TcpSocket[]> => {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => files.readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  )
  return tables.flatMap(parseTcpTable)
}

export const parseTcpTable = (text: string): TcpSocket[] =>
  text.split('\n').flatMap((line) => {
    const [, local = '', remote = '', state, , , , user = '', , inode] = line.trim().split(/\s+/)
    if (inode === undefined || !/^\d+$/.test(user)) return []
    return [{ local, remote, isListening: state === '0A', user: Number(user), inode }]
  })

/** The sockets that listen on a port. */
export const readListeners = async (port: number): Promise<TcpSocket[]> =>
  (await readTcpSockets()).filter(
    ({ isListening, local }) => isListening && local.endsWith(`:${toHexPort(port)}`),
  )

const toHexPort = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')

/** One end of a connection. */
export type Endpoint = { readonly address: string; readonly port: number }

/**
 * The user of the program at the other end of a loopback connection, from the kernel's tables. `unlisted`
 * when they have our end only; undefined where there are no such tables.
 */
export const userOfPeer = async (socket: Socket): Promise<number | 'unlisted' | undefined> => {
  const { remoteAddress, remotePort, localAddress, localPort } = socket
  if (remoteAddress === undefined || remotePort === undefined) return undefined
  if (localAddress === undefined || localPort === undefined) return undefined
  return findUser(
    await readTcpSockets(),
    { address: remoteAddress, port: remotePort },
    { address: localAddress, port: localPort },
  )
}

/** True for the program of another user; root can read everything anyway, and relays connections from Windows into WSL. */
export const isOtherUser = (user: number | 'unlisted' | undefined): boolean =>
  user !== undefined && user !== 0 && user !== process.getuid?.()

/** The user of `peer` in the tables, for its connection to `own`. */
export const findUser = (
  sockets: readonly TcpSocket[],
  peer: Endpoint,
  own: Endpoint,
): number | 'unlisted' | undefined => {
  const peerNames = formatEndpoint(peer)
  const ownNames = formatEndpoint(own)
  const found = sockets.find(
    ({ local, remote }) => peerNames.includes(local) && ownNames.includes(remote),
  )
  if (found) return found.user
  const isListed = sockets.some(
    ({ local, remote }) => ownNames.includes(local) && peerNames.includes(remote),
  )
  return isListed ? 'unlisted' : undefined
}

/** The names in the tables: IPv4, and IPv4 within IPv6, since either program may use either. */
const formatEndpoint = ({ address, port }: Endpoint): string[] => {
  const format = (...bytes: number[]): string => `${toHex(bytes)}:${toHexPort(port)}`
  if (address === '::1') return [format(...zeros(15), 1)]
  const v4 = address
    .replace(/^::ffff:/, '')
    .split('.')
    .map(Number)
  return [format(...v4), format(...zeros(10), 0xff, 0xff, ...v4)]
}

const zeros = (count: number): number[] => Array<number>(count).fill(0)

/** The kernel prints each four bytes as a number in its own byte order, which is also that of the array. */
const toHex = (bytes: readonly number[]): string =>
  [...new Uint32Array(Uint8Array.from(bytes).buffer)]
    .map((word) => word.toString(16).toUpperCase().padStart(8, '0'))
    .join('')
