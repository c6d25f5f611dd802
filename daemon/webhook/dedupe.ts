import { hash } from 'node:crypto'
import { type Remembered, createRemembered } from './remembered.ts'

/** How long a delivery is remembered. */
const rememberedSeconds = 24 * 3600
/** How many of one webhook are remembered. */
const maxRemembered = 10_000

/** One delivery as it is remembered: a hash, never what the sender sent. */
export type DeliveryKey = { readonly webhook: string; readonly hash: string }

/** The deliveries that are waiting, running or done: those that are not taken a second time. */
export type SeenDeliveries = {
  /** The event that this delivery has become, while it is remembered. */
  readonly eventOf: (key: DeliveryKey, nowMs: number) => string | undefined
  readonly remember: (key: DeliveryKey, eventId: string, nowMs: number) => void
  /** Lets it come again, unless another event has it by now. */
  readonly forget: (key: DeliveryKey, eventId: string) => void
  /** The oldest of each webhook first. */
  readonly entries: () => readonly RememberedDelivery[]
  /** Calls back with each that is remembered (with its time) or forgotten, until the returned function is called. */
  readonly follow: (
    listener: (key: DeliveryKey, eventId: string, rememberedAtMs: number | undefined) => void,
  ) => () => void
}

export type RememberedDelivery = {
  readonly key: DeliveryKey
  readonly eventId: string
  readonly atMs: number
}

/**
 * What two deliveries to one webhook have in common that are one: the sender's id, or the bytes of the
 * verified body. Undefined when nothing says so.
 */
export const deliveryKey = (
  webhook: string,
  dedupe: 'id' | 'body' | 'off',
  deliveryId: string | undefined,
  body: Buffer,
): DeliveryKey | undefined => {
  if (dedupe === 'body') return { webhook, hash: hash('sha256', body, 'binary') }
  if (dedupe === 'off' || deliveryId === undefined) return undefined
  // No JSON begins so: it is never the hash of a body.
  return { webhook, hash: hash('sha256', `id ${deliveryId}`, 'binary') }
}

/**
 * Remembers deliveries for 24 hours, and the newest 10,000 of each webhook, in memory. A flood at one
 * webhook cannot make another forget.
 */
export const createSeenDeliveries = (max = maxRemembered): SeenDeliveries => {
  const byWebhook = new Map<string, Remembered>()
  const listeners = new Set<Parameters<SeenDeliveries['follow']>[0]>()

  const of = (webhook: string): Remembered => {
    const known = byWebhook.get(webhook)
    if (known) return known
    const fresh = createRemembered(max, rememberedSeconds)
    byWebhook.set(webhook, fresh)
    return fresh
  }

  return {
    eventOf: ({ webhook, hash }, nowMs) => byWebhook.get(webhook)?.eventOf(hash, toSeconds(nowMs)),
    remember: (key, eventId, nowMs) => {
      of(key.webhook).put(key.hash, eventId, toSeconds(nowMs))
      for (const listener of listeners) listener(key, eventId, nowMs)
    },
    forget: (key, eventId) => {
      if (!byWebhook.get(key.webhook)?.remove(key.hash, eventId)) return
      for (const listener of listeners) listener(key, eventId, undefined)
    },
    entries: () =>
      [...byWebhook].flatMap(([webhook, remembered]) =>
        remembered.entries().map(({ hash, eventId, atSecond }) => ({
          key: { webhook, hash },
          eventId,
          atMs: atSecond * 1000,
        })),
      ),
    follow: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

const toSeconds = (ms: number): number => Math.floor(ms / 1000)
