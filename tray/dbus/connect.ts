import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'

/** A socket on which messages may be sent, and the bytes of messages that have come already. */
type OpenSocket = { readonly socket: Socket; readonly early: Buffer }

/**
 * Opens the first session bus that answers. Throws `bus-absent` when none is named or there,
 * `bus-refused`, `bus-closed`, `bus-timeout`.
 */
export const openSocket = async (
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): Promise<OpenSocket> => {
  const limit = AbortSignal.timeout(timeoutMs)
  let failure = new BusError('bus-absent', 'there is no session bus')
  for (const path of busSockets(env)) {
    const socket = connect({ path })
    // For its whole life: an error is always followed by `close`, and that is what is listened to.
    socket.on('error', () => undefined)
    const tooLate = () => socket.destroy()
    limit.addEventListener('abort', tooLate)
    try {
      await once(socket, 'connect', { signal: limit }).catch(() => {
        throw new BusError('bus-absent', 'no session bus listens')
      })
      return { socket, early: await authenticate(socket) }
    } catch (error) {
      socket.destroy()
      if (limit.aborted) throw new BusError('bus-timeout', 'the session bus does not answer')
      failure = error instanceof BusError ? error : failure
    } finally {
      limit.removeEventListener('abort', tooLate)
    }
  }
  throw failure
}

/**
 * The sockets at which the session bus may be, in the order to try, for `net.connect`: from
 * DBUS_SESSION_BUS_ADDRESS, else `$XDG_RUNTIME_DIR/bus` (D-Bus specification, "Server Addresses").
 * Only local sockets; an abstract one begins with NUL. Empty when there is none to try.
 */
export const busSockets = (env: NodeJS.ProcessEnv): string[] => {
  const runtime = env['XDG_RUNTIME_DIR']
  const ofUser = runtime ? [join(runtime, 'bus')] : []
  const address = env['DBUS_SESSION_BUS_ADDRESS']
  if (!address) return ofUser
  return address.split(';').flatMap((one) => {
    const colon = one.indexOf(':')
    if (one.slice(0, colon) !== 'unix') return []
    const keys = new Map(
      one
        .slice(colon + 1)
        .split(',')
        .map((pair) => [pair.slice(0, pair.indexOf('=')), unescape(pair)]),
    )
    const path = keys.get('path')
    if (path) return [path]
    const abstract = keys.get('abstract')
    if (abstract) return [`\0${abstract}`]
    return keys.get('runtime') === 'yes' ? ofUser : []
  })
}

const unescape = (pair: string): string => {
  const value = pair.slice(pair.indexOf('=') + 1)
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/**
 * Says who we are to the bus on a fresh socket: SASL EXTERNAL, the user id of the socket's owner
 * (D-Bus specification, "Authentication Protocol"). Resolves with bytes that came after the last
 * line. Throws `bus-refused` or `bus-closed`.
 */
const authenticate = async (socket: Socket): Promise<Buffer> =>
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

/**
 * Why something on the bus did not work. `code` is the D-Bus name of the error
 * (`org.freedesktop.DBus.Error.ServiceUnknown`) when a program answered it, else one of
 * `bus-absent`, `bus-refused`, `bus-closed`, `bus-timeout`, `bus-protocol`. Met only inside the tray;
 * what a person sees is a `DoorwardError`. The message may come from a stranger: show the code.
 */
export class BusError extends Error {
  override readonly name = 'BusError'
  readonly code: string

  constructor(code: string, message: string = code) {
    super(message)
    this.code = code
  }
}
