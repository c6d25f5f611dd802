import type { ChildProcess } from 'node:child_process'
import { Server } from 'node:net'
import type { AccessToken, EventRecord } from '../../shared/api.ts'
import { DoorwardError, type ErrorCode } from '../../shared/errors.ts'
import type { PartsSent } from '../delivery/multipart.ts'
import type { ResolvedTarget } from '../delivery/sender.ts'
import type { EventsSnapshot } from '../events/event-store.ts'
import type { Detail } from '../events/event-texts.ts'
import type { Place } from '../http/server.ts'
import type { TokenRequest } from '../oauth/dependencies.ts'
import type { TokenRecord } from '../oauth/tokens/token-record.ts'
import { knownError } from '../util/assets.ts'
import type { AcceptedEvent } from '../webhook/accepted-event.ts'
import type { Counted } from '../webhook/compiled-webhook.ts'
import type { DeliveryCopy, DeliveryKey } from '../webhook/dedupe.ts'
import type { Bucket } from '../webhook/rate-limit.ts'

/*
 * What two daemons of one home say to each other over the channel that the old one has opened when it
 * started the new one. Nobody else reads it: a pair of sockets without a name, never a file.
 */

/** Raised with every change of a message: one of another number is not handed over to. */
export const protocol = 3

/** From the old one. */
export type FromOld =
  | { readonly kind: 'hello'; readonly protocol: number; readonly places: readonly Place[] }
  | { readonly kind: 'memory'; readonly memory: MemoryCopy }
  | { readonly kind: 'event'; readonly record: EventRecord; readonly detail?: Detail | undefined }
  | { readonly kind: 'kept'; readonly id: string; readonly event: KeptCopy }
  | {
      readonly kind: 'delivery'
      readonly key: DeliveryKey
      readonly eventId: string
      readonly isKnown: boolean
    }
  | { readonly kind: 'progress'; readonly key: string; readonly reached?: PartsSent | undefined }
  /** Posted to Slack by this home. */
  | { readonly kind: 'message'; readonly name: string }
  /** The lock is yours, and tokens are yours to renew; with those that the disk refused. */
  | { readonly kind: 'office'; readonly unsaved: readonly TokenRecord[] }
  /** Comes with the socket. */
  | { readonly kind: 'socket'; readonly place: Place }
  | { readonly kind: 'serve' }
  | {
      readonly kind: 'access'
      readonly ask: number
      readonly provider: string
      readonly request: TokenRequest
    }
  /** All that was accepted has ended. */
  | { readonly kind: 'finished' }

/** Where the new one is found, and since when. */
export type Found = {
  readonly url: string
  /** Where senders reach the webhooks, when that is not `url`. */
  readonly publicUrl?: string | undefined
  readonly startedAt: string
}

/** From the new one. */
export type FromNew =
  /** All but the sockets is there; `holding` is what the lock is to say. */
  | {
      readonly kind: 'ready'
      readonly protocol: number
      readonly version: string
      readonly holding: string
      readonly places: readonly Place[]
    }
  | { readonly kind: 'failed'; readonly error: ErrorCopy }
  | { readonly kind: 'in-office' }
  | ({ readonly kind: 'serving' } & Found)
  | {
      readonly kind: 'token'
      readonly ask: number
      readonly token?: AccessToken
      readonly error?: ErrorCopy
    }
  /** Somebody stops the daemon: end too, in the usual time or at once. */
  | { readonly kind: 'end'; readonly atOnce: boolean }

/** One end of the channel between an old and a new daemon. */
export type Channel<Out, In> = {
  /** In order. A message to one that has gone is lost: `closed` tells of that. */
  readonly send: (message: Out, socket?: Server) => void
  /** The same; resolves once it is on its way, so that the channel can be closed. */
  readonly sendLast: (message: Out) => Promise<void>
  /** Calls back with each message, in order, from the next turn on. */
  readonly listen: (listener: (message: In, socket: Server | undefined) => void) => void
  /** Resolves when the other process has gone, or has let go of the channel. */
  readonly closed: Promise<void>
  readonly isOpen: () => boolean
  readonly close: () => void
}

type End = Pick<ChildProcess, 'send' | 'connected' | 'on' | 'once' | 'disconnect'>

const channelAt = <Out extends FromOld | FromNew, In extends FromOld | FromNew>(
  end: End,
): Channel<Out, In> => ({
  send: (message, socket) => {
    if (end.connected) end.send(message, socket, {}, () => undefined)
  },
  sendLast: async (message) =>
    new Promise<void>((resolve) => {
      if (end.connected) end.send(message, undefined, {}, () => resolve())
      else resolve()
    }),
  listen: (listener) =>
    void end.on('message', (message, handle) =>
      listener(message as In, handle instanceof Server ? handle : undefined),
    ),
  closed: new Promise<void>((resolve) => {
    if (end.connected) end.once('disconnect', () => resolve())
    else resolve()
  }),
  isOpen: () => end.connected,
  close: () => {
    if (end.connected) end.disconnect()
  },
})

/** The end of a daemon that has started its successor. */
export const channelToNew = (child: ChildProcess): Channel<FromOld, FromNew> => channelAt(child)

/** The end of a successor; undefined when nobody has started this process as one. */
export const channelToOld = (): Channel<FromNew, FromOld> | undefined =>
  process.send === undefined ? undefined : channelAt(process as unknown as End)

/** An error as it travels. */
type ErrorCopy = {
  readonly code: ErrorCode
  readonly message: string
  readonly hint?: string | undefined
  readonly localDetail?: string | undefined
}

/** What may be told of any thrown value; of a foreign error no more than that it is one. */
export const copyOfError = (thrown: unknown): ErrorCopy => {
  const { code, message, hint, localDetail } = knownError(thrown)
  return { code, message, hint, localDetail }
}

export const errorFrom = ({ code, message, hint, localDetail }: ErrorCopy): DoorwardError =>
  new DoorwardError(code, message, {
    hint,
    ...(localDetail === undefined ? {} : { localDetail }),
  })

/** The memory of a daemon as it travels. Times of one process mean nothing to another, so ages are sent (ms). */
export type MemoryCopy = {
  readonly events: EventsSnapshot
  readonly counts: readonly (readonly [path: string, counted: Counted])[]
  readonly kept: readonly (readonly [id: string, event: KeptCopy])[]
  readonly deliveries: readonly DeliveryCopy[]
  readonly rateLimits: readonly (readonly [webhook: string, bucket: Bucket, ageMs: number])[]
  readonly progress: readonly (readonly [key: string, reached: PartsSent])[]
  readonly messages: readonly string[]
}

/** What it takes to run an event again, but its prompt, which the event itself has. */
export type KeptCopy = Omit<AcceptedEvent, 'prompt' | 'targets'> & {
  readonly targets: readonly TargetCopy[]
}

type TargetCopy =
  | Exclude<ResolvedTarget, { kind: 'invalid' }>
  | { readonly text: string; readonly kind: 'invalid'; readonly error: ErrorCopy }
