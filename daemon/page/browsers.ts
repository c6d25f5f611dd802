import { ExpiringMap, newCode } from '../util/expiring-map.ts'

/*
 * How a browser becomes the owner's. A link appears in the history of the browser and, for a moment, on the
 * command line of the program that opens it: so it works once, for five minutes. The browser that uses it gets a
 * key in a cookie, and no address contains that.
 */

const linkLifeMs = 5 * 60_000
/** Of a browser that is not used. */
const browserLifeMs = 7 * 24 * 3_600_000
const maxEntries = 64

type Link = {
  /** The path of the view that it opens. */
  readonly to: string
}

/** A browser that has used a link. */
export type Browser = {
  /** Each form of a page repeats it: another page cannot know it. */
  readonly formKey: string
}

/** At most 64 unused links and 64 browsers; the oldest expire first. */
export class Browsers {
  readonly #links: ExpiringMap<Link>
  readonly #browsers: ExpiringMap<Browser>
  /** Buttons that were pressed: a double click sends two requests. */
  readonly #presses: ExpiringMap<true>
  /** By the form key; what the last action of a browser has done. */
  readonly #notices = new Map<string, string>()

  /** `now` is a monotonic clock in milliseconds. */
  constructor(now?: () => number) {
    this.#links = new ExpiringMap(maxEntries, linkLifeMs, now)
    this.#browsers = new ExpiringMap(maxEntries, browserLifeMs, now)
    this.#presses = new ExpiringMap(maxEntries, browserLifeMs, now)
  }

  /** A link to the path of a view. */
  issueLink(to: string): { readonly code: string; readonly expiresAt: Date } {
    const code = newCode()
    this.#links.set(code, { to })
    return { code, expiresAt: new Date(Date.now() + linkLifeMs) }
  }

  /** True for an unused link. Uses nothing up. */
  isUnused(code: string): boolean {
    return this.#links.get(code) !== undefined
  }

  /** Uses up a link: the key of its browser, and the path that it leads to. */
  open(code: string): { readonly key: string; readonly to: string } | undefined {
    const link = this.#links.get(code)
    if (!link) return undefined
    this.#links.delete(code)
    const key = newCode()
    this.#browsers.set(key, { formKey: newCode() })
    return { key, to: link.to }
  }

  /** The browser with this key, which lives on. */
  find(key: string | undefined): Browser | undefined {
    const browser = key === undefined ? undefined : this.#browsers.get(key)
    if (browser && key !== undefined) this.#browsers.set(key, browser)
    return browser
  }

  /** True for the first press of a button with this code. */
  takePress(code: string): boolean {
    const isFirst = this.#presses.get(code) === undefined
    this.#presses.set(code, true)
    return isFirst
  }

  /** Kept until the browser shows its next page. */
  leaveNotice({ formKey }: Browser, notice: string): void {
    if (this.#notices.size >= maxEntries) this.#notices.clear()
    this.#notices.set(formKey, notice)
  }

  takeNotice({ formKey }: Browser): string | undefined {
    const notice = this.#notices.get(formKey)
    this.#notices.delete(formKey)
    return notice
  }

  /** For the daemon after a restart. */
  snapshot(): ReturnType<ExpiringMap<Browser>['snapshot']> {
    return this.#browsers.snapshot()
  }

  restore(copies: ReturnType<ExpiringMap<Browser>['snapshot']>): void {
    this.#browsers.restore(copies)
  }
}
