import type { Socket } from 'node:net'
import { readTcpSockets, type TcpSocket, toHexPort } from '../../shared/network/tcp-table.ts'

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
