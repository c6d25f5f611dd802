import type { IncomingHttpHeaders } from 'node:http'
import type { Page } from '../oauth/login/callback-page.ts'

/** Why an event is not shown, with the HTTP status. */
export type ErrorPage = { readonly status: number; readonly page: Page }

const advice = 'To see the event, click it in the tray, or run in a terminal:'
const command = 'doorward events'

/** For a used, expired or invalid link: the page does not say which. */
export const linkExpired: ErrorPage = {
  status: 410,
  page: {
    kind: 'ignored',
    title: 'This link no longer works',
    message: 'A link to an event works once and for one minute, so that no one else can use it.',
    advice: 'Click the event in the tray again, or run in a terminal:',
    command,
  },
}

export const eventForgotten: ErrorPage = {
  status: 404,
  page: {
    kind: 'ignored',
    title: 'This event is no longer in memory',
    message: 'Doorward keeps only the newest events, and only while the daemon runs.',
    advice: 'To list them:',
    command,
  },
}

/** The link stays valid for its owner. */
export const otherUser: ErrorPage = {
  status: 403,
  page: {
    kind: 'ignored',
    title: 'This event belongs to another user',
    message: 'Your browser runs as another user than the daemon.',
    advice,
    command,
  },
}

const reasons: Readonly<Record<NotAPerson, string>> = {
  prefetch: 'Your browser loaded the link before you opened it.',
  embedded: 'The page of an event cannot be part of another page.',
  'other-site': 'Another page led here. If you meant to, copy the link into the address bar.',
}

/** For requests that no person made; the link stays valid. */
export const notAPerson = (reason: NotAPerson): ErrorPage => ({
  status: 403,
  page: {
    kind: 'ignored',
    title: 'Open this link yourself',
    message: reasons[reason],
    advice,
    command,
  },
})

/** Why a request does not come from a person who opens the page: it must not use up the link. */
type NotAPerson = 'prefetch' | 'embedded' | 'other-site'

/**
 * Checks the Fetch Metadata headers. A typed address, or one that another program opens, has the site `none`;
 * reloads, redirects and forms of our page have our own. Older browsers send no such headers.
 */
export const whyNotAPerson = (
  method: string,
  headers: IncomingHttpHeaders,
  ownOrigin: string,
): NotAPerson | undefined => {
  const isPrefetch = prefetchHeaders.some((name) =>
    /prefetch|prerender|preview/i.test(String(headers[name] ?? '')),
  )
  if (isPrefetch) return 'prefetch'
  const { origin, 'sec-fetch-site': site } = headers
  if (!isAllowed(site, ['none', 'same-origin'])) return 'other-site'
  // Every browser sends the origin of a form with POST.
  if (method === 'POST' ? origin !== ownOrigin : !isAllowed(origin, [ownOrigin]))
    return 'other-site'
  const isPage =
    isAllowed(headers['sec-fetch-dest'], ['document']) &&
    isAllowed(headers['sec-fetch-mode'], ['navigate'])
  return isPage ? undefined : 'embedded'
}

/** Headers of browsers that load a page early, or for a preview picture. */
const prefetchHeaders = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

const isAllowed = (value: string | string[] | undefined, allowed: readonly string[]): boolean =>
  value === undefined || (typeof value === 'string' && allowed.includes(value))
