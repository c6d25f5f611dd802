import type { Socket } from 'node:net'
import { BusError } from './bus-error.ts'

/**
 * Says who we are to the bus on a fresh socket: SASL EXTERNAL, the user id of the socket's owner
 * (D-Bus specification, "Authentication Protocol"). Resolves with bytes that came after the last
 * line. Throws `bus-refused` or `bus-closed`.
 */
export const authenticate = async (socket: Socket): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    let text = Buffer.alloc(0)
    const done = (outcome: () => void) => {
      socket.off('data', read).off('close', closed)
      socket.pause()
      outcome()
    }
    const closed = () => done(() => reject(new BusError('bus-closed')))
    const read = (chunk: Buffer) => {
      text = Buffer.concat([text, chunk])
      const end = text.indexOf('\r\n')
      if (end < 0 && text.length < maxLine) return
      const line = text.subarray(0, end).toString('latin1')
      if (!line.startsWith('OK ')) return done(() => reject(new BusError('bus-refused')))
      socket.write('BEGIN\r\n')
      done(() => resolve(text.subarray(end + 2)))
    }
    socket.on('data', read).on('close', closed)
    const user = Buffer.from(String(process.getuid?.() ?? 0)).toString('hex')
    socket.write(`\0AUTH EXTERNAL ${user}\r\n`)
  })

const maxLine = 16_384
