import { hash } from 'node:crypto'

/** How long a delivery is remembered. */
const rememberedSeconds = 24 * 3600
/** How many of one webhook are remembered. */
const maxRemembered = 10_000

/** One delivery as it is remembered: a hash, never what the sender sent. */
export type DeliveryKey = { readonly webhook: string; readonly hash: string }

/** The deliveries that are waiting, running or done: those that are not taken a second time. */
export type Deliveries = {
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
  if (dedupe === 'body') return { webhook, hash: hash('sha256', body, 'base64') }
  if (dedupe === 'off' || deliveryId === undefined) return undefined
  // No JSON begins so: it is never the hash of a body.
  return { webhook, hash: hash('sha256', `id ${deliveryId}`, 'base64') }
}

/**
 * Remembers deliveries for 24 hours, and the newest 10,000 of each webhook (or some more), in memory. A
 * flood at one webhook cannot make another forget.
 */
export const createDeliveries = (max = maxRemembered): Deliveries => {
  /** In whole seconds: a number that is not whole is an object of its own to V8. */
  type Remembered = { readonly eventId: string; readonly atSecond: number }
  // A Map keeps the order in which keys came: the oldest is first.
  type OfWebhook = { readonly byHash: Map<string, Remembered>; untilLook: number }
  const byWebhook = new Map<string, OfWebhook>()
  const listeners = new Set<Parameters<Deliveries['follow']>[0]>()
  // The way to the first entry of a Map leads over all that were before it: not for every delivery.
  const lookEvery = Math.ceil(max / 16)

  const of = (webhook: string): OfWebhook => {
    const known = byWebhook.get(webhook)
    if (known) return known
    const fresh = { byHash: new Map<string, Remembered>(), untilLook: lookEvery }
    byWebhook.set(webhook, fresh)
    return fresh
  }
  const letGoOfOld = (known: OfWebhook, nowMs: number): void => {
    known.untilLook -= 1
    if (known.untilLook > 0) return
    known.untilLook = lookEvery
    const nowSecond = secondOf(nowMs)
    for (const [old, { atSecond }] of known.byHash) {
      if (known.byHash.size <= max && nowSecond - atSecond < rememberedSeconds) break
      known.byHash.delete(old)
    }
  }

  return {
    eventOf: ({ webhook, hash }, nowMs) => {
      const known = byWebhook.get(webhook)?.byHash.get(hash)
      return known && secondOf(nowMs) - known.atSecond < rememberedSeconds
        ? known.eventId
        : undefined
    },
    remember: (key, eventId, nowMs) => {
      const { webhook, hash } = key
      const known = of(webhook)
      known.byHash.delete(hash)
      known.byHash.set(hash, { eventId, atSecond: secondOf(nowMs) })
      letGoOfOld(known, nowMs)
      for (const listener of listeners) listener(key, eventId, nowMs)
    },
    forget: (key, eventId) => {
      const { webhook, hash } = key
      const known = byWebhook.get(webhook)
      if (known?.byHash.get(hash)?.eventId !== eventId) return
      known.byHash.delete(hash)
      for (const listener of listeners) listener(key, eventId, undefined)
    },
    entries: () =>
      [...byWebhook].flatMap(([webhook, { byHash }]) =>
        [...byHash].map(([hash, { eventId, atSecond }]) => ({
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

const secondOf = (ms: number): number => Math.floor(ms / 1000)
