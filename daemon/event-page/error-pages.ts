import type { IncomingHttpHeaders } from 'node:http'
import type { Page } from '../oauth/login/callback-page.ts'

/** A page that says why an event is not shown, with its HTTP status. */
export type Refusal = { readonly status: number; readonly page: Page }

const advice = 'To see the event, click it in the tray. Or in a terminal:'
const command = 'doorward events'

/** For a link that was used, is too old, or never was one: nobody is told which. */
export const usedUp: Refusal = {
  status: 410,
  page: {
    kind: 'ignored',
    title: 'This link no longer works',
    message: 'A link to an event works once and for a minute, so that nobody else can follow it.',
    advice: 'Click the event in the tray again. Or in a terminal:',
    command,
  },
}

export const forgotten: Refusal = {
  status: 404,
  page: {
    kind: 'ignored',
    title: 'This event is no longer in memory',
    message: 'Only the newest events are kept, and only until the daemon ends.',
    advice: 'Those there are:',
    command,
  },
}

/** Another user of this machine has seen the link: it stays good for its owner. */
export const otherUser: Refusal = {
  status: 403,
  page: {
    kind: 'ignored',
    title: 'This event belongs to another user',
    message: 'Your browser does not run as the user whose daemon this is.',
    advice,
    command,
  },
}

const reasons: Readonly<Record<NotAPerson, string>> = {
  guess: 'Your browser loaded the link ahead, before anybody had opened it.',
  embedded: 'An event is shown in a window of its own, not as a part of another page.',
  'other-site': 'Another page led here. If that was you: copy the link into the address bar.',
}

/** For what no person has opened; the link stays good. */
export const notOpened = (why: NotAPerson): Refusal => ({
  status: 403,
  page: {
    kind: 'ignored',
    title: 'Open this link yourself',
    message: reasons[why],
    advice,
    command,
  },
})

/** Why a request is not a person who looks at the page: nothing may be used up by it. */
type NotAPerson = 'guess' | 'embedded' | 'other-site'

/**
 * Looks at what a browser says of its request (Fetch Metadata). An address that is typed, or opened by
 * another program, comes from no site (`none`); a reload, a redirect and a form of our page from our own.
 * Older browsers say nothing at all.
 */
export const notAPerson = (
  method: string,
  headers: IncomingHttpHeaders,
  ourOrigin: string,
): NotAPerson | undefined => {
  if (guessHeaders.some((name) => /prefetch|prerender|preview/i.test(String(headers[name] ?? ''))))
    return 'guess'
  const { origin, 'sec-fetch-site': site } = headers
  if (!isAllowed(site, ['none', 'same-origin'])) return 'other-site'
  // Every browser names the origin of a form that it sends by POST.
  if (method === 'POST' ? origin !== ourOrigin : !isAllowed(origin, [ourOrigin]))
    return 'other-site'
  const isPage =
    isAllowed(headers['sec-fetch-dest'], ['document']) &&
    isAllowed(headers['sec-fetch-mode'], ['navigate'])
  return isPage ? undefined : 'embedded'
}

/** Of a browser that loads ahead what it thinks will be opened, or makes a picture of it. */
const guessHeaders = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

const isAllowed = (value: string | string[] | undefined, allowed: readonly string[]): boolean =>
  value === undefined || (typeof value === 'string' && allowed.includes(value))
