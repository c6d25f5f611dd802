import type { HookSettings, HookRef } from '../../shared/config/source.ts'
import type { FetchedDelivery } from '../webhook/pipeline.ts'
import type { IncomingHttpHeaders } from 'node:http'

/** A hook as its sender has it. */
export type SenderHook = {
  readonly id: number
  readonly url: string
  readonly isActive: boolean
  readonly events: readonly string[]
}

export type PastDelivery = {
  /** The id in the headers of the delivery: the same whenever it is sent again. */
  readonly deliveryId: string
  readonly at: string
  readonly event: string
  readonly isOk: boolean
  /** The answer that the sender got: a status and its words, or why it got no answer. */
  readonly answer: string
  /** The id of this attempt: a delivery that is sent again has another. */
  readonly id: string
  readonly action?: string
  /** Answered as doorward answers: by this daemon, or by that of another machine with the same hook. */
  readonly isAccepted: boolean
}

type PastDeliveries = {
  /** The newest first. */
  readonly deliveries: readonly PastDelivery[]
  /** The time at the sender. */
  readonly nowMs: number
  /** False where there were more than are read: the oldest are missing. */
  readonly isWhole: boolean
  /** The etag of the list, for the next request. */
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
  /** False when it did not exist. */
  readonly deleteHook: (hook: HookRef, signal: AbortSignal) => Promise<boolean>
  readonly pingHook: (hook: HookRef, signal: AbortSignal) => Promise<void>
  readonly lastDelivery: (hook: HookRef, signal: AbortSignal) => Promise<PastDelivery | undefined>
  readonly past: Past
}

/** The deliveries that a sender keeps. */
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

/** The part of a sender's API that catch-up uses. */
export type PastApi = Pick<SenderApi, 'title' | 'past'> & Partial<Pick<SenderApi, 'listHooks'>>

/** The longest list of deliveries that is read; older ones are left out, and an event says so. */
export const maxListed = 10_000

type Page = {
  readonly deliveries: readonly PastDelivery[]
  readonly headers: IncomingHttpHeaders
  readonly hasMore: boolean
}

/**
 * Reads a list of deliveries page by page, back to a time at the sender: senders list the newest first. Only
 * the first page may be `same`.
 */
export const listPast = async (
  sinceMs = Infinity,
  perPage: number,
  readPage: (page: number) => Promise<Page | 'same'>,
): Promise<PastDeliveries | 'same'> => {
  const deliveries: PastDelivery[] = []
  let first: IncomingHttpHeaders | undefined
  let isWhole = false
  for (let page = 1; !isWhole && page <= maxListed / perPage; page += 1) {
    const read = await readPage(page)
    if (read === 'same') return 'same'
    first ??= read.headers
    const recent = read.deliveries.filter(({ at }) => Date.parse(at) >= sinceMs)
    deliveries.push(...recent)
    isWhole = recent.length < read.deliveries.length || !read.hasMore
  }
  const { date = '', etag } = first ?? {}
  const nowMs = Date.parse(date) || Date.now()
  return { deliveries, nowMs, isWhole, ...(etag !== undefined && { etag }) }
}

/** A delivery of its payload and headers; undefined where the sender has no payload any more. */
export const toFetched = (payload: unknown, headers: unknown): FetchedDelivery | undefined => {
  if (typeof payload !== 'object' || payload === null) return undefined
  const sent = Object.entries(typeof headers === 'object' && headers !== null ? headers : {})
  const rawHeaders = sent.flatMap(([name, value]) =>
    typeof value === 'string' && !/^(content-|x-gitlab-token$)/i.test(name) ? [name, value] : [],
  )
  return {
    rawHeaders: [...rawHeaders, 'content-type', 'application/json'],
    bytes: Buffer.from(JSON.stringify(payload)),
  }
}
