import { isSameText } from '../../shared/client/identity.ts'
import { createShortLived, newCode } from './short-lived.ts'

/*
 * A link to the page of an event is in the address bar, in the history and, for a moment, on the command
 * line of the program that opens it. So it works once and for a minute; the browser that used it gets a
 * key of its own, which alone can load the page again.
 */

const linkLifeMs = 60_000
const pageLifeMs = 3_600_000
const max = 64

export type Linked = {
  readonly eventId: string
  /** To be said once, when the page is first shown. */
  readonly notice?: string
}

export type Opened = Linked & { readonly key: string }

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
      if (!page || key === undefined || !isSameText(key, page.key)) return undefined
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
