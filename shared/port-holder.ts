import { readFileSync, readdirSync, readlinkSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { plainLine } from './plain-text.ts'

/** Who listens at a port of this machine; `name` is the short name of its process. */
export type PortHolder = { readonly pid: number; readonly name: string }

/**
 * The process that listens at a port where local clients come to, as far as Linux tells: undefined
 * elsewhere, when nobody listens, and for processes of other users.
 */
export const holderOf = async (port: number): Promise<PortHolder | undefined> => {
  const sockets = new Set(listeningAt(port)?.map((inode) => `socket:[${inode}]`))
  if (sockets.size === 0) return undefined
  for (const pid of processes()) {
    if (hasOneOf(pid, sockets)) return { pid, name: nameOf(pid) }
    // There may be thousands of open files to look at.
    await nextTurn()
  }
  return undefined
}

/** Whether anybody listens at a port where local clients come to; undefined where the system does not tell. */
export const isPortHeld = (port: number): boolean | undefined => {
  const sockets = listeningAt(port)
  return sockets && sockets.length > 0
}

/** `nc (pid 55)`, for a message. */
export const describeHolder = ({ pid, name }: PortHolder): string => `${name} (pid ${pid})`

/** The inodes of sockets that listen (state 0A) at a port on all addresses or on loopback: proc_pid_net(5). */
const listeningAt = (port: number): string[] | undefined => {
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map(textOf)
  if (tables.every((table) => table === undefined)) return undefined
  return tables
    .flatMap((table) => (table ?? '').split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => {
      const [address = '', hexPort = ''] = local.split(':')
      return state === '0A' && Number.parseInt(hexPort, 16) === port && isLocal(address)
    })
    .map((fields) => fields[9] ?? '')
}

/** Any, 127.0.0.0/8, ::1, and these two in IPv6's mapped form, each as the kernel writes them on little-endian machines. */
const isLocal = (address: string): boolean =>
  /^(0{8}|0{32}|[0-9A-F]{6}7F|0{24}01000000|0{16}FFFF0000[0-9A-F]{6}7F)$/.test(address)

const processes = (): number[] => {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return []
  }
}

const hasOneOf = (pid: number, sockets: ReadonlySet<string>): boolean => {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((file) => {
      try {
        return sockets.has(readlinkSync(`/proc/${pid}/fd/${file}`))
      } catch {
        // Closed since.
        return false
      }
    })
  } catch {
    // Another user's, or gone.
    return false
  }
}

/** A process may call itself anything. */
const nameOf = (pid: number): string =>
  plainLine(textOf(`/proc/${pid}/comm`) ?? '') || 'a program without a name'

const textOf = (path: string): string | undefined => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}
