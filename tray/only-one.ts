import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { rename, stat, unlink } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { systemCode } from '../shared/errors.ts'

/**
 * Makes this process the only tray of a home, as long as it lives: answers false when another one
 * runs. The lock is a listening socket, so the system lets go of it even after `kill -9`.
 *
 * On Linux its name is an abstract one and on Windows a pipe's: there is no file that could be left
 * behind, and of several starts exactly one gets it. Elsewhere it is a file in the current folder,
 * which must be a private one of that home; bound by its bare name, because the path of a socket may
 * be no longer than about 100 bytes.
 */
export const becomeOnlyOne = async (
  homeRoot: string,
  platform: NodeJS.Platform = process.platform,
): Promise<boolean> => {
  const name = await nameOfLock(homeRoot, platform)
  for (let tries = 0; tries < 10; tries += 1) {
    if (await listen(name)) return true
    if (name !== fileName || !(await clearStale(name))) return false
  }
  return false
}

const fileName = 'tray.sock'

/** By device and inode, so that every path to a home leads to the same lock. */
const nameOfLock = async (homeRoot: string, platform: NodeJS.Platform): Promise<string> => {
  if (platform !== 'linux' && platform !== 'win32') return fileName
  const { dev, ino } = await stat(homeRoot, { bigint: true })
  const hash = createHash('sha256').update(`${process.getuid?.()} ${dev} ${ino}`).digest('hex')
  const name = `doorward-tray-${hash.slice(0, 32)}`
  return platform === 'linux' ? `\0${name}` : `\\\\.\\pipe\\${name}`
}

const listen = async (name: string): Promise<boolean> => {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(name)
    await once(server, 'listening')
    server.unref()
    return true
  } catch (error) {
    if (systemCode(error) === 'EADDRINUSE') return false
    throw error
  }
}

/**
 * Removes the socket of a dead tray. Renaming is atomic, so of several starts only one takes it away;
 * if what it took turns out to be alive after all, it is put back.
 */
const clearStale = async (name: string): Promise<boolean> => {
  if (await isAlive(name)) return false
  const taken = `stale-${process.pid}.sock`
  try {
    await rename(name, taken)
    if (await isAlive(taken)) {
      await rename(taken, name)
      return false
    }
    await unlink(taken)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
  }
  return true
}

const isAlive = async (name: string): Promise<boolean> => {
  const socket = connect(name)
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
