import { BusError, openSocket } from './connect.ts'
import { type Message, decodeMessage, encodeMessage, lengthOfMessage } from './message.ts'
import { type ServedObject, answerCall } from './served-object.ts'

/*
 * A connection to the desktop's session bus, as small as the tray needs it: calls with a time limit,
 * signals, names, and objects of our own. Nothing here throws outside of a promise or a call: a bus
 * that dies rejects what waits and resolves `closed`.
 */

export type Call = {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly signature?: string
  readonly body?: readonly unknown[]
  /** Default 5000. */
  readonly timeoutMs?: number
}

export type Signal = {
  /** Unique name of who sent it; not the well-known one. */
  readonly sender: string
  readonly path: string
  readonly body: readonly unknown[]
}

export type SignalMatch = {
  readonly interface: string
  readonly member: string
  readonly sender?: string
  readonly path?: string
  readonly arg0?: string
}

export type Bus = {
  /** Our unique name, `:1.42`. */
  readonly name: string
  /**
   * Calls a method and resolves with the values of the reply. Rejects with `BusError`: the D-Bus
   * name of the error that was answered, `bus-timeout`, `bus-closed`, `bus-protocol`.
   */
  readonly call: (call: Call) => Promise<readonly unknown[]>
  /** Hears a signal until the returned function is called. Rejects as `call`. */
  readonly onSignal: (match: SignalMatch, listener: (signal: Signal) => void) => Promise<() => void>
  /** Tells who owns a name, now and at every change; undefined is nobody. Rejects as `call`. */
  readonly onOwner: (
    name: string,
    listener: (owner: string | undefined) => void,
  ) => Promise<() => void>
  /** Takes a well-known name; false when another program has it. Rejects as `call`. */
  readonly ownName: (name: string) => Promise<boolean>
  /** Answers calls to a path from now on. */
  readonly serve: (path: string, object: ServedObject) => void
  /** Sends a signal; on a dead bus it goes nowhere. Throws when the values do not fit. */
  readonly emit: (
    path: string,
    interfaceName: string,
    member: string,
    signature: string,
    body: readonly unknown[],
  ) => void
  /** Resolves when the connection has ended, whoever ended it. */
  readonly closed: Promise<void>
  readonly close: () => void
}

const daemon = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const
const defaultTimeoutMs = 5000
const doNotQueue = 4

/**
 * Connects to the session bus that the environment names.
 * Throws `BusError`: `bus-absent`, `bus-refused`, `bus-closed`, `bus-timeout`.
 */
export const connectBus = async (
  env: NodeJS.ProcessEnv = process.env,
  timeoutMs = defaultTimeoutMs,
): Promise<Bus> => {
  const { socket, early } = await openSocket(env, timeoutMs)
  const waiting = new Map<number, (reply: Message | BusError) => void>()
  const listeners = new Set<{ match: SignalMatch; listener: (signal: Signal) => void }>()
  const objects = new Map<string, ServedObject>()
  let lastSerial = 0

  const send = (message: Omit<Message, 'serial'>): number => {
    const serial = lastSerial + 1
    const bytes = encodeMessage({ ...message, serial })
    lastSerial = serial
    if (socket.writable) socket.write(bytes)
    return serial
  }

  const call: Bus['call'] = async ({ timeoutMs: limitMs = defaultTimeoutMs, ...request }) =>
    new Promise((resolve, reject) => {
      if (!socket.writable) throw new BusError('bus-closed')
      const serial = send({ type: 'call', ...request })
      const timer = setTimeout(() => settle(new BusError('bus-timeout')), limitMs)
      const settle = (reply: Message | BusError) => {
        clearTimeout(timer)
        waiting.delete(serial)
        if (reply instanceof BusError) reject(reply)
        else if (reply.type === 'reply') resolve(reply.body ?? [])
        else reject(new BusError(reply.errorName ?? 'bus-protocol', String(reply.body?.[0] ?? '')))
      }
      waiting.set(serial, settle)
    })

  const answer = (message: Message): void => {
    const to = { destination: message.sender, replySerial: message.serial }
    try {
      const object = objects.get(message.path ?? '')
      if (!object) throw new BusError('org.freedesktop.DBus.Error.UnknownObject')
      const reply = answerCall(object, message)
      if (!message.noReply) send({ type: 'reply', ...to, ...reply })
    } catch (error) {
      const code = error instanceof BusError && error.code.includes('.') ? error.code : failed
      if (!message.noReply) send({ type: 'error', ...to, errorName: code })
    }
  }

  const receive = (message: Message): void => {
    if (message.type === 'call') return answer(message)
    if (message.type !== 'signal') return waiting.get(message.replySerial ?? 0)?.(message)
    const { sender = '', path = '', body = [] } = message
    for (const { match, listener } of listeners) {
      if (match.interface !== message.interface || match.member !== message.member) continue
      if (match.path !== undefined && match.path !== path) continue
      if (match.arg0 !== undefined && match.arg0 !== body[0]) continue
      // Only the bus knows who owns a well-known name; it has looked already.
      const isExact = match.sender?.startsWith(':') || match.sender === daemon.destination
      if (isExact && match.sender !== sender) continue
      try {
        listener({ sender, path, body })
      } catch {
        // A fault of one listener is no fault of the connection.
      }
    }
  }

  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      for (const settle of waiting.values()) settle(new BusError('bus-closed'))
      resolve()
    })
  })

  let pending = early
  const read = (chunk: Buffer): void => {
    pending = pending.length > 0 ? Buffer.concat([pending, chunk]) : chunk
    try {
      for (;;) {
        const length = lengthOfMessage(pending)
        if (length === undefined || pending.length < length) return
        const message = decodeMessage(pending.subarray(0, length))
        pending = pending.subarray(length)
        if (message) receive(message)
      }
    } catch {
      // Where the next message begins is not known any more.
      socket.destroy()
    }
  }
  socket.on('data', read)
  socket.resume()
  read(Buffer.alloc(0))

  const onSignal: Bus['onSignal'] = async (match, listener) => {
    const entry = { match, listener }
    const rule = toMatchRule(match)
    listeners.add(entry)
    try {
      await call({ ...daemon, member: 'AddMatch', signature: 's', body: [rule] })
    } catch (error) {
      listeners.delete(entry)
      throw error
    }
    return () => {
      if (!listeners.delete(entry)) return
      const removed = call({ ...daemon, member: 'RemoveMatch', signature: 's', body: [rule] })
      removed.catch(() => undefined)
    }
  }

  try {
    const [name] = await call({ ...daemon, member: 'Hello', timeoutMs })
    return {
      name: String(name),
      call,
      onSignal,
      onOwner: async (wanted, listener) => {
        let heard = false
        const stop = await onSignal(
          {
            interface: daemon.interface,
            member: 'NameOwnerChanged',
            sender: daemon.destination,
            arg0: wanted,
          },
          ({ body }) => {
            heard = true
            listener(body[2] === '' ? undefined : String(body[2]))
          },
        )
        const owner = await call({
          ...daemon,
          member: 'GetNameOwner',
          signature: 's',
          body: [wanted],
        })
          .then(([found]) => String(found))
          .catch((error: unknown) => {
            if (error instanceof BusError && error.code.endsWith('.NameHasNoOwner'))
              return undefined
            stop()
            throw error
          })
        if (!heard) listener(owner)
        return stop
      },
      ownName: async (wanted) => {
        const body = [wanted, doNotQueue]
        const [code] = await call({ ...daemon, member: 'RequestName', signature: 'su', body })
        return code === 1 || code === 4
      },
      serve: (path, object) => void objects.set(path, object),
      emit: (path, interfaceName, member, signature, body) =>
        void send({ type: 'signal', path, interface: interfaceName, member, signature, body }),
      closed,
      close: () => void socket.destroy(),
    }
  } catch (error) {
    socket.destroy()
    throw error
  }
}

const failed = 'org.freedesktop.DBus.Error.Failed'

const toMatchRule = ({ arg0, ...match }: SignalMatch): string =>
  Object.entries({ type: 'signal', ...match, ...(arg0 === undefined ? {} : { arg0 }) })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}='${value}'`)
    .join(',')
