import { createHash, randomBytes } from 'node:crypto'
import { isEqualInConstantTime } from '../../shared/client/identity.ts'

/*
 * A link to the page of an event is in the address bar, in the history and, for a moment, on the command
 * line of the program that opens it. So it works once and for a minute; the browser that used it gets a
 * key of its own, which alone can load the page again.
 */

const linkLifeMs = 60_000
const pageLifeMs = 3_600_000
const max = 64

type Linked = {
  readonly eventId: string
  /** To be said once, when the page is first shown. */
  readonly notice?: string
}

type Opened = Linked & { readonly key: string }

export type EventLinks = {
  readonly issue: (linked: Linked) => { readonly code: string; readonly expiresAt: Date }
  /** True for a code of any kind that is alive. Uses nothing up. */
  readonly isKnown: (code: string) => boolean
  /** True for a link that has not been used. Uses nothing up. */
  readonly isUnused: (code: string) => boolean
  /** The event of an unused link, which is used up by that, or of one that this key belongs to. */
  readonly open: (code: string, key: string | undefined) => Opened | undefined
  /** A code that has an event run again, once. */
  readonly issueRetry: (eventId: string) => string
  /** The event of such a code. Used again, as by a double click, it is there but not the first. */
  readonly takeRetry: (
    code: string,
  ) => { readonly eventId: string; readonly isFirst: boolean } | undefined
}

/** How long the browser keeps the key of a page after it was last shown, in seconds. */
export const keySeconds = pageLifeMs / 1000

/** At most 64 links, pages and retry buttons are alive; the oldest go first. */
export const createEventLinks = (now?: () => number): EventLinks => {
  const links = createShortLived<Linked>({ max, lifeMs: linkLifeMs }, now)
  const pages = createShortLived<Omit<Opened, 'notice'>>({ max, lifeMs: pageLifeMs }, now)
  const retries = createShortLived<{ readonly eventId: string; readonly isFirst: boolean }>(
    { max, lifeMs: pageLifeMs },
    now,
  )
  return {
    issue: (linked) => {
      const code = newCode()
      links.set(code, linked)
      return { code, expiresAt: new Date(Date.now() + linkLifeMs) }
    },
    isKnown: (code) => [links, pages, retries].some((kept) => kept.get(code) !== undefined),
    isUnused: (code) => links.get(code) !== undefined,
    open: (code, key) => {
      const linked = links.get(code)
      if (linked) {
        links.delete(code)
        const opened = { ...linked, key: newCode() }
        pages.set(code, { eventId: opened.eventId, key: opened.key })
        return opened
      }
      const page = pages.get(code)
      if (!page || key === undefined || !isEqualInConstantTime(key, page.key)) return undefined
      pages.set(code, page)
      return page
    },
    issueRetry: (eventId) => {
      const code = newCode()
      retries.set(code, { eventId, isFirst: true })
      return code
    },
    takeRetry: (code) => {
      const found = retries.get(code)
      if (found) retries.set(code, { ...found, isFirst: false })
      return found
    },
  }
}

/** A few values under secret keys, each for a limited time. The keys themselves are not kept. */
type ShortLived<Value> = {
  /** Keeps a value, for its whole time from now; the oldest goes when there are too many. */
  readonly set: (key: string, value: Value) => void
  readonly get: (key: string) => Value | undefined
  readonly delete: (key: string) => void
}

type Limits = { readonly max: number; readonly lifeMs: number }

/** `now` is a clock in milliseconds that nobody can set. */
export const createShortLived = <Value>(
  { max, lifeMs }: Limits,
  now: () => number = () => performance.now(),
): ShortLived<Value> => {
  const kept = new Map<string, { readonly value: Value; readonly endsAt: number }>()
  return {
    set: (key, value) => {
      const name = hashKey(key)
      // To the end: the first one is always the oldest.
      kept.delete(name)
      kept.set(name, { value, endsAt: now() + lifeMs })
      for (const [name, { endsAt }] of kept)
        if (kept.size > max || endsAt <= now()) kept.delete(name)
        else break
    },
    get: (key) => {
      const found = kept.get(hashKey(key))
      return found && found.endsAt > now() ? found.value : undefined
    },
    delete: (key) => void kept.delete(hashKey(key)),
  }
}

/** 256 random bits, as 43 characters that need no escaping anywhere. */
const newCode = (): string => randomBytes(32).toString('base64url')

/** Looked up by its hash, a key cannot be guessed bit by bit from the time that takes. */
const hashKey = (key: string): string => createHash('sha256').update(key).digest('base64')
