import type { HookSettings, HookRef } from '../../shared/config/source.ts'
import type { FetchedDelivery } from '../webhook/pipeline.ts'

/** A hook as its sender has it. */
export type SenderHook = {
  readonly id: number
  readonly url: string
  readonly isActive: boolean
  readonly events: readonly string[]
}

export type PastDelivery = {
  /** What names the delivery in its headers: the same whenever it is sent again. */
  readonly deliveryId: string
  readonly at: string
  readonly event: string
  readonly isOk: boolean
  /** What the sender got as an answer: a status and its words, or why there was none. */
  readonly answer: string
  /** Of this attempt: a delivery that is sent again has another. */
  readonly id: string
  readonly action?: string
  /** Answered as doorward answers: by this daemon, or by that of another machine with the same hook. */
  readonly isAccepted: boolean
}

export type PastDeliveries = {
  /** The newest first. */
  readonly deliveries: readonly PastDelivery[]
  /** The time at the sender. */
  readonly nowMs: number
  /** False where there were more than are read: the oldest are missing. */
  readonly isWhole: boolean
  /** Of the list, for the next request. */
  readonly etag?: string
}

/** The API of a sender. Everything throws `DoorwardError`, without token and secret. */
export type SenderApi = {
  /** Its name, for people. */
  readonly title: string
  readonly listHooks: (repository: string, signal: AbortSignal) => Promise<SenderHook[]>
  /** Makes it where there is no number yet; else sets everything, also of one that was switched off. */
  readonly saveHook: (
    hook: { readonly repository: string; readonly hookId: number | undefined },
    settings: HookSettings,
    signal: AbortSignal,
  ) => Promise<number>
  /** False when it was gone. */
  readonly deleteHook: (hook: HookRef, signal: AbortSignal) => Promise<boolean>
  readonly pingHook: (hook: HookRef, signal: AbortSignal) => Promise<void>
  readonly lastDelivery: (hook: HookRef, signal: AbortSignal) => Promise<PastDelivery | undefined>
  readonly past: Past
}

/** What a sender keeps of what it sent. */
export type Past = {
  /** Since a time at the sender; without one what time it is there. `same` as the list with the etag. */
  readonly list: (
    hook: HookRef,
    since: { readonly ms?: number | undefined; readonly etag?: string | undefined },
    signal: AbortSignal,
  ) => Promise<PastDeliveries | 'same'>
  /** Undefined when the sender has its details no longer. */
  readonly fetch: (
    hook: HookRef,
    id: string,
    signal: AbortSignal,
  ) => Promise<FetchedDelivery | undefined>
}

/** What catch-up needs of a sender. */
export type PastApi = Pick<SenderApi, 'title' | 'past'> & Partial<Pick<SenderApi, 'listHooks'>>

/** Of one list of deliveries; the oldest of more are left out, and that is told. */
export const maxListed = 10_000
