import { type Socket, connect } from 'node:net'

/** Sends bytes as they are, ends its half, and gives all that comes back until the other side closes. */
export const sendRaw = async (url: string, bytes: string | Buffer): Promise<string> => {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  socket.end(bytes)
  await new Promise((resolve) => socket.once('close', resolve))
  return text
}

/** The same for a request with `Connection: close`: what takes its time is answered too. */
export const sendOpen = async (url: string, bytes: string | Buffer): Promise<string> => {
  const socket = await openRaw(url, bytes)
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  await new Promise((resolve) => socket.once('close', resolve))
  return text
}

/** An open connection on which this was sent. */
export const openRaw = async (url: string, bytes: string | Buffer): Promise<Socket> => {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => undefined)
  await new Promise((resolve) => socket.write(bytes, resolve))
  return socket
}
