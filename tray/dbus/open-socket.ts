import { once } from 'node:events'
import { type Socket, connect } from 'node:net'
import { busSockets } from './address.ts'
import { authenticate } from './authenticate.ts'
import { BusError } from './bus-error.ts'

/** A socket on which messages may be sent, and the bytes of messages that have come already. */
export type OpenSocket = { readonly socket: Socket; readonly early: Buffer }

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
