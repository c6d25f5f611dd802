import { constantTimeEqual } from '../../shared/constant-time.ts'
import { ExpiringMap, newCode } from '../util/expiring-map.ts'

/*
 * The link to the page of an event appears in the address bar, in the history and, for a moment, on the command
 * line of the program that opens it. So it works once and for one minute; the browser that uses it gets a
 * key, without which the page cannot be loaded again.
 */

const linkLifeMs = 60_000
const pageLifeMs = 3_600_000
const maxEntries = 64

type Link = {
  readonly eventId: string
  /** Shown once, with the page. */
  readonly notice?: string
}

/** The action of a button on the event of its page. */
export type ButtonAction =
  'retry' | 'runAgain' | 'cancel' | 'approve' | 'reject' | 'again' | 'deliver'

type OpenPage = Link & { readonly key: string }

type Button = {
  readonly eventId: string
  /** The digest of the answer on its page. */
  readonly shown?: string | undefined
  readonly action: ButtonAction
  readonly isFirst: boolean
}

export type EventLinks = {
  readonly issue: (link: Link) => { readonly code: string; readonly expiresAt: Date }
  /** True for a valid code of any kind. Uses nothing up. */
  readonly isKnown: (code: string) => boolean
  /** True for an unused link. Uses nothing up. */
  readonly isUnused: (code: string) => boolean
  /** Uses up an unused link, or opens a used one again with its key. */
  readonly open: (code: string, key: string | undefined) => OpenPage | undefined
  /** A code that runs an event again, or cancels it, once. */
  readonly issueButton: (eventId: string, action: ButtonAction, shown?: string) => string
  /** The event of such a code; `isFirst` is false the second time, as after a double click. */
  readonly takeButton: (code: string) => Button | undefined
}

/** The life of a page's key after the page was last shown, in seconds. */
export const keySeconds = pageLifeMs / 1000

/** Keeps at most 64 links, pages and buttons each; the oldest expire first. */
export const createEventLinks = (now?: () => number): EventLinks => {
  const links = new ExpiringMap<Link>(maxEntries, linkLifeMs, now)
  const pages = new ExpiringMap<Omit<OpenPage, 'notice'>>(maxEntries, pageLifeMs, now)
  const buttons = new ExpiringMap<Button>(maxEntries, pageLifeMs, now)
  return {
    issue: (link) => {
      const code = newCode()
      links.set(code, link)
      return { code, expiresAt: new Date(Date.now() + linkLifeMs) }
    },
    isKnown: (code) => [links, pages, buttons].some((map) => map.get(code) !== undefined),
    isUnused: (code) => links.get(code) !== undefined,
    open: (code, key) => {
      const link = links.get(code)
      if (link) {
        links.delete(code)
        const opened = { ...link, key: newCode() }
        pages.set(code, { eventId: opened.eventId, key: opened.key })
        return opened
      }
      const page = pages.get(code)
      if (!page || key === undefined || !constantTimeEqual(key, page.key)) return undefined
      pages.set(code, page)
      return page
    },
    issueButton: (eventId, action, shown) => {
      const code = newCode()
      buttons.set(code, {
        eventId,
        action,
        ...(shown !== undefined && { shown }),
        isFirst: true,
      })
      return code
    },
    takeButton: (code) => {
      const button = buttons.get(code)
      if (button) buttons.set(code, { ...button, isFirst: false })
      return button
    },
  }
}
