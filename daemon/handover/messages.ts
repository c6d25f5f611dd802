import type { AccessToken, EventRecord } from '../../shared/api.ts'
import type { Reached } from '../deliver/progress.ts'
import type { Detail } from '../events/event-details.ts'
import type { Place } from '../http/listeners.ts'
import type { TokenRecord } from '../oauth/token/token-record.ts'
import type { TokenRequest } from '../oauth/token/tokens.ts'
import type { DeliveryKey } from '../webhook/deliveries.ts'
import type { ErrorCopy } from './error-copy.ts'
import type { KeptCopy, MemoryCopy } from './memory-copy.ts'

/*
 * What two daemons of one home say to each other over the channel that the old one has opened when it
 * started the new one. Nobody else reads it: a pair of sockets without a name, never a file.
 */

/** Raised with every change of a message: one of another number is not handed over to. */
export const protocol = 2

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
  | { readonly kind: 'progress'; readonly key: string; readonly reached?: Reached | undefined }
  /** Posted to Slack by this home. */
  | { readonly kind: 'message'; readonly name: string }
  /** A token was handed out that is to work until then, in milliseconds since 1970. */
  | { readonly kind: 'promise'; readonly provider: string; readonly until: number }
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
