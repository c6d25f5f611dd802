import type { IncomingHttpHeaders } from 'node:http'
import { type Markup, markup } from './markup.ts'

/* Who may see the page: a person of this machine in a browser that was opened for it. */

/** Why a browser gets no view, with the HTTP status. */
export type Refusal = {
  readonly status: number
  readonly title: string
  readonly content: Markup
}

const wayIn = markup`<p>Click the first row of the tray, or run in a terminal:</p><pre><code>doorward open</code></pre>`

/** For a used, expired or invalid link: the page does not say which. */
export const linkExpired: Refusal = {
  status: 410,
  title: 'This link no longer works',
  content: markup`<p>A link to doorward works once and for five minutes, so that no one else can use it.</p>${wayIn}`,
}

export const noSession: Refusal = {
  status: 401,
  title: 'Open doorward again',
  content: markup`<p>This browser has no key to doorward, or the daemon was stopped since, which ends all keys.</p>${wayIn}`,
}

/** The link stays valid for its owner. */
export const otherUser: Refusal = {
  status: 403,
  title: 'This page belongs to another user',
  content: markup`<p>Your browser runs as another user than the daemon.</p>`,
}

const reasons: Readonly<Record<NoPerson, string>> = {
  prefetch: 'Your browser loaded the page before you opened it.',
  embedded: 'Doorward cannot be part of another page.',
  'other-site': 'Another page led here. If you meant to, copy the address into the address bar.',
}

/** For requests that no person made; the link stays valid. */
export const notAPerson = (reason: NoPerson): Refusal => ({
  status: 403,
  title: 'Open this yourself',
  content: markup`<p>${reasons[reason]}</p>${wayIn}`,
})

/** Why a request does not come from a person who opens the page: it must not use up a link. */
type NoPerson = 'prefetch' | 'embedded' | 'other-site'

/**
 * Checks the Fetch Metadata headers. A typed address, or one that another program opens, has the site `none`;
 * reloads, redirects, forms and scripts of our page have our own. Older browsers send no such headers.
 */
export const whyNoPerson = (
  method: string,
  headers: IncomingHttpHeaders,
  ownOrigin: string,
): NoPerson | undefined => {
  const isPrefetch = prefetchHeaders.some((name) =>
    /prefetch|prerender|preview/i.test(String(headers[name] ?? '')),
  )
  if (isPrefetch) return 'prefetch'
  const { origin, 'sec-fetch-site': site } = headers
  if (!isAllowed(site, ['none', 'same-origin'])) return 'other-site'
  // Every browser sends the origin of a form with POST.
  if (method === 'POST' ? origin !== ownOrigin : !isAllowed(origin, [ownOrigin]))
    return 'other-site'
  const isOurs = isAllowed(headers['sec-fetch-dest'], destinations(method, site))
  return isOurs ? undefined : 'embedded'
}

/** Only our own page loads its parts. */
const destinations = (method: string, site: string | string[] | undefined): readonly string[] =>
  method === 'POST' || site !== 'same-origin'
    ? ['document']
    : ['document', 'empty', 'style', 'script']

/** Headers of browsers that load a page early, or for a preview picture. */
const prefetchHeaders = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

const isAllowed = (value: string | string[] | undefined, allowed: readonly string[]): boolean =>
  value === undefined || (typeof value === 'string' && allowed.includes(value))
