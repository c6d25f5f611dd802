import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'

/** A socket that is ready for messages, and the bytes of messages that it has received already. */
type OpenSocket = { readonly socket: Socket; readonly early: Buffer }

/**
 * Opens the first session bus that answers. Throws `bus-absent` without one, `bus-refused`,
 * `bus-closed`, `bus-timeout`.
 */
export const openSocket = async (
  env: NodeJS.ProcessEnv,
  timeoutMs: number,
): Promise<OpenSocket> => {
  const limit = AbortSignal.timeout(timeoutMs)
  let failure = new BusError('bus-absent', 'there is no session bus')
  for (const path of busSockets(env)) {
    const socket = connect({ path })
    // For its whole life: after each error comes `close`, which has a listener.
    socket.on('error', () => undefined)
    const tooLate = () => socket.destroy()
    limit.addEventListener('abort', tooLate)
    try {
      await once(socket, 'connect', { signal: limit }).catch(() => {
        throw new BusError('bus-absent', 'no session bus is listening')
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
 * The paths to try in this order, for `net.connect`: from DBUS_SESSION_BUS_ADDRESS, else
 * `$XDG_RUNTIME_DIR/bus` (D-Bus specification, "Server Addresses"). Only local sockets; an abstract one
 * begins with NUL.
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
 * Authenticates on a new socket by SASL EXTERNAL with the user id (D-Bus specification, "Authentication
 * Protocol"). Resolves with the bytes after the last line. Throws `bus-refused` or `bus-closed`.
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
 * An error of the bus, used only inside the tray. `code` is the D-Bus name in an error reply, such as
 * `org.freedesktop.DBus.Error.ServiceUnknown`, or else `bus-absent`, `bus-refused`, `bus-closed`,
 * `bus-timeout` or `bus-protocol`. The message may come from another program: show only the code.
 */
export class BusError extends Error {
  override readonly name = 'BusError'
  readonly code: string

  constructor(code: string, message: string = code) {
    super(message)
    this.code = code
  }
}
