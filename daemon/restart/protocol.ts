import type { ChildProcess } from 'node:child_process'
import { Server } from 'node:net'
import type { Place } from '../http/server.ts'
import type { TokenRecord } from '../oauth/tokens/token-record.ts'
import type { ErrorCopy } from '../util/error-copy.ts'
import type { EndedEvent, Snapshot } from './snapshot.ts'

/*
 * The messages between two daemons of one home during a restart. They travel over the channel that the
 * old daemon opens when it starts the new one: a pair of sockets without a name, never a file.
 */

/** From the old daemon, in this order. */
export type FromOld =
  /** `places` are the listening sockets that it can pass. */
  | { readonly kind: 'hello'; readonly protocol: number; readonly places: readonly Place[] }
  /** The lock and the tokens are yours; `unsaved` could not be written to the disk. */
  | { readonly kind: 'lead'; readonly unsaved: readonly TokenRecord[] }
  /** Comes with the socket. */
  | { readonly kind: 'socket'; readonly place: Place }
  | { readonly kind: 'serve'; readonly snapshot: Snapshot }
  /** An event that the old daemon still ran, or had just accepted, is over. */
  | ({ readonly kind: 'ended' } & EndedEvent)
  /** Everything that the old daemon had accepted is finished. */
  | { readonly kind: 'finished' }

/** From the new daemon. */
export type FromNew =
  /** It can listen; the lock is to contain `lockToken`. It needs the sockets of `places`. */
  | {
      readonly kind: 'ready'
      readonly protocol: number
      readonly version: string
      readonly lockToken: string
      readonly places: readonly Place[]
    }
  | { readonly kind: 'failed'; readonly error: ErrorCopy }
  | { readonly kind: 'leading' }
  | ({ readonly kind: 'serving' } & Address)
  /** The daemon is being stopped: stop too, `now` without waiting for agents. */
  | { readonly kind: 'stop'; readonly now: boolean }

/** The addresses of a daemon, and since when it serves. */
export type Address = {
  readonly url: string
  /** The address for senders of webhooks, when it is not `url`. */
  readonly publicUrl?: string | undefined
  readonly startedAt: string
}

type End = Pick<ChildProcess, 'send' | 'connected' | 'on' | 'once' | 'disconnect'>

type Of<Message, Kind> = Message & { readonly kind: Kind }

/** One end of the channel. A message to a process that has exited is lost, which `closed` reports. */
export class Channel<Out extends FromOld | FromNew, In extends FromOld | FromNew> {
  readonly #end: End
  readonly #listeners = new Set<(message: In, socket: Server | undefined) => void>()
  /** Resolves when the other process has exited or has closed the channel. */
  readonly closed: Promise<void>

  constructor(end: End) {
    this.#end = end
    this.closed = new Promise<void>((resolve) => {
      if (end.connected) end.once('disconnect', () => resolve())
      else resolve()
    })
    end.on('message', (message, handle) => {
      const socket = handle instanceof Server ? handle : undefined
      for (const listener of this.#listeners) listener(message as In, socket)
    })
  }

  /** Sends in order; resolves when the message is on its way, so that the channel can be closed. */
  async send(message: Out, socket?: Server): Promise<void> {
    return new Promise<void>((resolve) => {
      if (this.#end.connected) this.#end.send(message, socket, {}, () => resolve())
      else resolve()
    })
  }

  listen(listener: (message: In, socket: Server | undefined) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The next message of this kind; undefined when the channel closes before. */
  async next<Kind extends In['kind']>(kind: Kind): Promise<Of<In, Kind> | undefined> {
    return new Promise((resolve) => {
      const unlisten = this.listen((message) => {
        if (message.kind !== kind) return
        unlisten()
        resolve(message as Of<In, Kind>)
      })
      void this.closed.then(() => resolve(undefined))
    })
  }

  close(): void {
    if (this.#end.connected) this.#end.disconnect()
  }
}

/** The channel of a new daemon; undefined when this process was not started by an old one. */
export const channelToOld = (): Channel<FromNew, FromOld> | undefined =>
  process.send === undefined ? undefined : new Channel(process as unknown as End)
