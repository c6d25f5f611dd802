import { once } from 'node:events'
import { rename, unlink } from 'node:fs/promises'
import { type Server, connect, createServer } from 'node:net'
import { createHash } from 'node:crypto'
import { systemCode } from '../shared/errors.ts'

/**
 * Makes this process the only tray of a home, as long as it lives: answers false when another one
 * runs. The lock is a listening socket, so it vanishes even with `kill -9`.
 *
 * The current folder must be a private one of that home: the socket is bound by its bare name there,
 * because the path of a socket may be no longer than about 100 bytes. On Windows it is a named pipe.
 */
export const becomeOnlyOne = async (homeRoot: string): Promise<boolean> => {
  const name =
    process.platform === 'win32'
      ? `\\\\.\\pipe\\doorward-tray-${createHash('sha256').update(homeRoot).digest('hex')}`
      : 'tray.sock'
  for (let attempt = 0; attempt < 10; attempt += 1) {
    if (await listen(name)) return (await answererOf(name)) === process.pid
    if (await clearStale(name)) continue
    return false
  }
  return false
}

const listen = async (name: string): Promise<boolean> => {
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.end(String(process.pid))
  })
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
  if (process.platform === 'win32' || (await answererOf(name)) !== undefined) return false
  const taken = `stale-${process.pid}.sock`
  try {
    await rename(name, taken)
  } catch {
    return true
  }
  if ((await answererOf(taken)) !== undefined) {
    await rename(taken, name)
    return false
  }
  await unlink(taken)
  return true
}

/** The process behind a socket, 0 when it does not say, undefined when there is none. */
const answererOf = async (name: string): Promise<number | undefined> => {
  const socket = connect(name)
  socket.setTimeout(1000, () => socket.destroy())
  try {
    await once(socket, 'connect')
  } catch {
    return undefined
  }
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString()))
  socket.on('error', () => undefined)
  await once(socket, 'close')
  return Number(text) || 0
}
