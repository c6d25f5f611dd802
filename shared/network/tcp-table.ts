// Not 'node:fs/promises': loading it would cost every command a millisecond.
import { promises as files } from 'node:fs'

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

export const toHexPort = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')
