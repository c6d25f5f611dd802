import { execFile } from 'node:child_process'
import { readFile, readdir, readlink } from 'node:fs/promises'
import { basename } from 'node:path'
import { promisify } from 'node:util'
import { plainLine } from './plain-text.ts'

/** A process that listens on a port, by its number and the name it goes by. */
export type PortHolder = { readonly pid: number; readonly name: string }

/** What to do about another one that holds the port of the daemon. */
export const portHeldHint = 'stop it, or choose another port with server.port or DOORWARD_PORT'

/**
 * Who listens on this TCP port of this machine, as far as the system tells this user: on Linux by
 * `/proc`, on macOS by `lsof`. Undefined when nobody does, when it is a program of another user, and on
 * other systems. Never throws.
 */
export const portHolder = async (port: number): Promise<PortHolder | undefined> => {
  try {
    if (process.platform === 'linux') return await holderInProc(port)
    if (process.platform === 'darwin') return await holderByLsof(port)
  } catch {
    // Who holds a port only makes a message better.
  }
  return undefined
}

/**
 * Whether anybody listens on this TCP port, without a word to who does: on Linux only, elsewhere
 * undefined. Never throws.
 */
export const isPortHeld = async (port: number): Promise<boolean | undefined> =>
  process.platform === 'linux' ? (await inodesAt(port)).length > 0 : undefined

const inodesAt = async (port: number): Promise<string[]> => {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'utf8').catch(() => '')),
  )
  return tables.flatMap((table) => listeningInodes(table, port))
}

const holderInProc = async (port: number): Promise<PortHolder | undefined> => {
  const links = new Set((await inodesAt(port)).map((inode) => `socket:[${inode}]`))
  if (links.size === 0) return undefined
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    if (await hasOpen(name, links)) return { pid: Number(name), name: await nameOf(name) }
  }
  return undefined
}

/** Inodes of the sockets that listen on a port, in a table of proc_net_tcp(5). */
export const listeningInodes = (table: string, port: number): string[] =>
  table.split('\n').flatMap((line) => {
    const [, local, , state, , , , , , inode] = line.trim().split(/\s+/)
    const isListening = state === '0A'
    const isOnPort = Number.parseInt(local?.split(':')[1] ?? '', 16) === port
    return isListening && isOnPort && inode !== undefined ? [inode] : []
  })

/** Of another user's process nothing can be seen. */
const hasOpen = async (pid: string, links: ReadonlySet<string>): Promise<boolean> => {
  for (const fd of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
    const link = await readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')
    if (links.has(link)) return true
  }
  return false
}

/** Programs that are known by the file they run. */
const interpreters = new Set(['node', 'node-MainThread', 'MainThread', 'bun', 'deno', 'ruby'])

/** No more than the script of its arguments: those may hold secrets. */
const nameOf = async (pid: string): Promise<string> => {
  const comm = (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')).trim()
  if (!interpreters.has(comm) && !comm.startsWith('python')) return plainLine(comm) || 'unknown'
  const argv = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0')
  // An option with its value in it stands before the script of a daemon of ours.
  const [program = comm, script = ''] = argv.filter((word) => !/^--[\w-]+=/.test(word))
  const isScript = /^[^-]/.test(script) && /\.\w{1,4}$|\//.test(script)
  return plainLine([basename(program), ...(isScript ? [basename(script)] : [])].join(' '))
}

const holderByLsof = async (port: number): Promise<PortHolder | undefined> => {
  const { stdout } = await promisify(execFile)(
    'lsof',
    ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpc'],
    { timeout: 5000 },
  )
  return firstOfLsof(stdout)
}

/** The first process of `lsof -Fpc`: `p<pid>` and `c<command>`, a line each. */
export const firstOfLsof = (text: string): PortHolder | undefined => {
  const [, pid, name] = /^p(\d+)\nc(.+)$/m.exec(text) ?? []
  return pid === undefined || name === undefined
    ? undefined
    : { pid: Number(pid), name: plainLine(name) }
}
