import { hash } from 'node:crypto'
import { BoundedMap } from '../util/collections.ts'
import { type DayJournal, toDigest } from '../util/day-journal.ts'

/** How long a delivery is remembered. */
const rememberedMs = 24 * 3_600_000
/** How many deliveries of each webhook are remembered at least. */
const maxRemembered = 10_000
/** The oldest are removed many at a time: a Map skips all that was deleted before each first entry. */
const spare = 1.1

/** What identifies a delivery: its webhook, with the name of a rule, and a hash, never what the sender sent. */
export type DeliveryKey = {
  readonly webhook: string
  readonly hash: string
  /** A second hash that identifies it as well, as no signature covers the id of the sender. */
  readonly bodyHash?: string
}

/** One remembered delivery, for another process. */
export type DeliveryCopy = {
  readonly key: DeliveryKey
  readonly eventId: string
  readonly ageMs: number
}

/**
 * What two copies of one delivery to a webhook have in common: the sender's id, or the bytes of the
 * verified body; with `second` that as well. Undefined when there is neither.
 */
export const deliveryKey = (
  webhook: string,
  dedupe: 'id' | 'body' | 'off',
  deliveryId: string | undefined,
  body: Buffer,
  second?: Buffer | string,
): DeliveryKey | undefined => {
  if (dedupe === 'body') return { webhook, hash: hash('sha256', body, 'binary') }
  if (dedupe === 'off' || deliveryId === undefined) return undefined
  // No JSON begins like this, so it never equals the hash of a body.
  const key = { webhook, hash: hash('sha256', `id ${deliveryId}`, 'binary') }
  return second === undefined ? key : { ...key, bodyHash: hash('sha256', second, 'binary') }
}

/** The key of a delivery for one rule of its webhook: each rule runs once. */
export const ofRule = (
  key: DeliveryKey | undefined,
  rule: string | undefined,
): DeliveryKey | undefined =>
  key && rule !== undefined ? { ...key, webhook: `${key.webhook} ${rule}` } : key

/** The same for a rule that runs once for each comment: also the comment identifies it, whatever event is about it. */
export const ofComment = (
  webhook: string,
  key: DeliveryKey | undefined,
  comment: string | undefined,
): DeliveryKey | undefined => {
  if (comment === undefined) return key
  const bodyHash = hash('sha256', comment, 'binary')
  return key ? { ...key, bodyHash } : { webhook, hash: bodyHash }
}

type Seen = { readonly eventId: string; readonly atMs: number }

/**
 * Deliveries that wait, run or are done, so that none runs twice: for 24 hours, and the newest 10,000
 * of each webhook, so that a flood at one webhook cannot push out those of another. In memory, and those that
 * are settled also in `journal`, for the next start.
 */
export class SeenDeliveries {
  readonly #max: number
  readonly #journal: DayJournal | undefined
  /** The oldest of each webhook first. */
  readonly #byWebhook = new Map<string, BoundedMap<string, Seen>>()

  constructor(max = maxRemembered, journal?: DayJournal) {
    this.#max = max
    this.#journal = journal
  }

  /** The event that this delivery became, while it is remembered. */
  eventFor(key: DeliveryKey, nowMs: number): string | undefined {
    const { webhook, hash, bodyHash } = key
    const ofWebhook = this.#byWebhook.get(webhook)
    const seen = ofWebhook?.get(hash) ?? (bodyHash && ofWebhook?.get(bodyHash))
    if (seen) return nowMs - seen.atMs < rememberedMs ? seen.eventId : undefined
    if (!this.#journal?.hasEarlier) return undefined
    for (const digest of digestsOf(key)) {
      const eventId = this.#journal.find(digest)
      if (eventId !== undefined) return eventId
    }
    return undefined
  }

  /** Remembers it for the next start too. Not before it is done, as a crash loses what waits and runs. */
  settle(key: DeliveryKey, value: string): void {
    for (const digest of digestsOf(key)) this.#journal?.remember(digest, value)
  }

  /** Remembers a delivery as the newest of its webhook. */
  remember(key: DeliveryKey, eventId: string, nowMs: number): void {
    let ofWebhook = this.#byWebhook.get(key.webhook)
    if (!ofWebhook)
      this.#byWebhook.set(key.webhook, (ofWebhook = new BoundedMap(this.#max, this.#max * spare)))
    for (const hash of hashesOf(key)) ofWebhook.set(hash, { eventId, atMs: nowMs })
  }

  /** Allows the delivery again, unless it belongs to another event by now. */
  forget(key: DeliveryKey, eventId: string): void {
    const ofWebhook = this.#byWebhook.get(key.webhook)
    for (const hash of hashesOf(key))
      if (ofWebhook?.get(hash)?.eventId === eventId) ofWebhook.delete(hash)
    for (const digest of digestsOf(key)) this.#journal?.forget(digest, eventId)
  }

  /** All that is remembered, the oldest of each webhook first. */
  snapshot(nowMs: number): DeliveryCopy[] {
    return [...this.#byWebhook].flatMap(([webhook, ofWebhook]) =>
      [...ofWebhook].map(([hash, { eventId, atMs }]) => ({
        key: { webhook, hash },
        eventId,
        ageMs: nowMs - atMs,
      })),
    )
  }

  /** Remembers what a snapshot of another process has. */
  restore(copies: readonly DeliveryCopy[], nowMs: number): void {
    for (const { key, eventId, ageMs } of copies) this.remember(key, eventId, nowMs - ageMs)
  }
}

const hashesOf = ({ hash, bodyHash }: DeliveryKey): readonly string[] =>
  bodyHash === undefined ? [hash] : [hash, bodyHash]

const digestsOf = (key: DeliveryKey): readonly string[] =>
  hashesOf(key).map((hash) => toDigest(key.webhook, hash))
