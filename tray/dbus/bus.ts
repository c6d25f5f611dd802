import type { Socket } from 'node:net'
import { BusError, openSocket } from './connect.ts'
import { type Message, decodeMessage, encodeMessage, lengthOfMessage } from './message.ts'
import { type ServedObject, answerCall } from './served-object.ts'

/*
 * A connection to the desktop's session bus with what the tray needs: calls with a time limit, signals,
 * names, and served objects. When the bus dies, pending calls reject and `closed` resolves; no error
 * escapes as an event.
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
  /** The unique name of the sender, not its well-known one. */
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

const busDaemon = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const
const defaultTimeoutMs = 5000
const doNotQueue = 4

type SignalHandler = {
  readonly match: SignalMatch
  readonly listener: (signal: Signal) => void
}

export class Bus {
  /** Resolves when the connection has closed, from either side. */
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #pendingCalls = new Map<number, (reply: Message | BusError) => void>()
  readonly #handlers: SignalHandler[] = []
  readonly #objects = new Map<string, ServedObject>()
  #name = ''
  #lastSerial = 0
  #unread: Buffer = Buffer.alloc(0)

  /**
   * Connects to the session bus that the environment names.
   * Throws `BusError`: `bus-absent`, `bus-refused`, `bus-closed`, `bus-timeout`.
   */
  static async connect(
    env: NodeJS.ProcessEnv = process.env,
    timeoutMs = defaultTimeoutMs,
  ): Promise<Bus> {
    const { socket, early } = await openSocket(env, timeoutMs)
    const bus = new Bus(socket, early)
    try {
      const [name] = await bus.call({ ...busDaemon, member: 'Hello', timeoutMs })
      bus.#name = String(name)
      return bus
    } catch (error) {
      bus.close()
      throw error
    }
  }

  private constructor(socket: Socket, early: Buffer) {
    this.#socket = socket
    this.closed = new Promise<void>((resolve) => {
      socket.once('close', () => {
        for (const settle of this.#pendingCalls.values()) settle(new BusError('bus-closed'))
        resolve()
      })
    })
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.resume()
    this.#read(early)
  }

  /** Our unique name, `:1.42`. */
  get name(): string {
    return this.#name
  }

  /**
   * Calls a method and resolves with the values of the reply. Rejects with `BusError`: the D-Bus
   * name of the error in the reply, `bus-timeout`, `bus-closed`, `bus-protocol`.
   */
  async call({ timeoutMs = defaultTimeoutMs, ...request }: Call): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      if (!this.#socket.writable) throw new BusError('bus-closed')
      const serial = this.#send({ type: 'call', ...request })
      const timer = setTimeout(() => settle(new BusError('bus-timeout')), timeoutMs)
      const settle = (reply: Message | BusError) => {
        clearTimeout(timer)
        this.#pendingCalls.delete(serial)
        if (reply instanceof BusError) reject(reply)
        else if (reply.type === 'reply') resolve(reply.body ?? [])
        else reject(new BusError(reply.errorName ?? 'bus-protocol', String(reply.body?.[0] ?? '')))
      }
      this.#pendingCalls.set(serial, settle)
    })
  }

  /** Calls the listener for each matching signal. Rejects as `call`. */
  async onSignal(match: SignalMatch, listener: (signal: Signal) => void): Promise<void> {
    this.#handlers.push({ match, listener })
    const body = [toMatchRule(match)]
    await this.call({ ...busDaemon, member: 'AddMatch', signature: 's', body })
  }

  /** Reports the owner of a name now and at every change; undefined without one. Rejects as `call`. */
  async onOwner(name: string, listener: (owner: string | undefined) => void): Promise<void> {
    const { interface: sender } = busDaemon
    let hasChanged = false
    const match = { interface: sender, member: 'NameOwnerChanged', sender, arg0: name }
    await this.onSignal(match, ({ body }) => {
      hasChanged = true
      listener(body[2] === '' ? undefined : String(body[2]))
    })
    const owner = await this.#getOwner(name)
    if (!hasChanged) listener(owner)
  }

  /** Takes a well-known name; false when another program has it. Rejects as `call`. */
  async ownName(name: string): Promise<boolean> {
    const request = { ...busDaemon, member: 'RequestName', signature: 'su' }
    const [code] = await this.call({ ...request, body: [name, doNotQueue] })
    return code === 1 || code === 4
  }

  /** Answers calls to a path from now on. */
  serve(path: string, object: ServedObject): void {
    this.#objects.set(path, object)
  }

  /** Sends a signal; does nothing on a closed bus. Throws when the values do not fit the signature. */
  emit(
    path: string,
    interfaceName: string,
    member: string,
    signature: string,
    body: readonly unknown[],
  ): void {
    this.#send({ type: 'signal', path, interface: interfaceName, member, signature, body })
  }

  close(): void {
    this.#socket.destroy()
  }

  async #getOwner(name: string): Promise<string | undefined> {
    try {
      const request = { ...busDaemon, member: 'GetNameOwner', signature: 's', body: [name] }
      return String((await this.call(request))[0])
    } catch (error) {
      if (error instanceof BusError && error.code.endsWith('.NameHasNoOwner')) return undefined
      throw error
    }
  }

  #send(message: Omit<Message, 'serial'>): number {
    const serial = this.#lastSerial + 1
    const bytes = encodeMessage({ ...message, serial })
    this.#lastSerial = serial
    if (this.#socket.writable) this.#socket.write(bytes)
    return serial
  }

  #read(chunk: Buffer): void {
    this.#unread = this.#unread.length > 0 ? Buffer.concat([this.#unread, chunk]) : chunk
    try {
      for (;;) {
        const length = lengthOfMessage(this.#unread)
        if (length === undefined || this.#unread.length < length) return
        const message = decodeMessage(this.#unread.subarray(0, length))
        this.#unread = this.#unread.subarray(length)
        if (message) this.#receive(message)
      }
    } catch {
      // After a damaged message there is no telling where the next one begins.
      this.#socket.destroy()
    }
  }

  #receive(message: Message): void {
    if (message.type === 'call') this.#answer(message)
    else if (message.type === 'signal') this.#dispatch(message)
    else this.#pendingCalls.get(message.replySerial ?? 0)?.(message)
  }

  #answer(message: Message): void {
    const to = { destination: message.sender, replySerial: message.serial }
    try {
      const object = this.#objects.get(message.path ?? '')
      if (!object) throw new BusError('org.freedesktop.DBus.Error.UnknownObject')
      const reply = answerCall(object, message)
      if (!message.noReply) this.#send({ type: 'reply', ...to, ...reply })
    } catch (error) {
      const isDbusName = error instanceof BusError && error.code.includes('.')
      const errorName = isDbusName ? error.code : 'org.freedesktop.DBus.Error.Failed'
      if (!message.noReply) this.#send({ type: 'error', ...to, errorName })
    }
  }

  #dispatch(message: Message): void {
    const { sender = '', path = '', body = [] } = message
    for (const { match, listener } of this.#handlers) {
      if (match.interface !== message.interface || match.member !== message.member) continue
      if (match.path !== undefined && match.path !== path) continue
      if (match.arg0 !== undefined && match.arg0 !== body[0]) continue
      // Only the bus knows who owns a well-known name; its own match rule has checked that.
      const isUnique = match.sender?.startsWith(':') || match.sender === busDaemon.destination
      if (isUnique && match.sender !== sender) continue
      try {
        listener({ sender, path, body })
      } catch {
        // An error in one listener must not end the connection.
      }
    }
  }
}

const toMatchRule = ({ arg0, ...match }: SignalMatch): string =>
  Object.entries({ type: 'signal', ...match, ...(arg0 === undefined ? {} : { arg0 }) })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}='${value}'`)
    .join(',')
