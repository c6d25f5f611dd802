import type { IncomingHttpHeaders } from 'node:http'

/** Why a request is not a person who looks at the page: nothing may be used up by it. */
export type NotAPerson = 'guess' | 'embedded' | 'other-site'

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
  if (!isOneOf(site, ['none', 'same-origin'])) return 'other-site'
  // Every browser names the origin of a form that it sends by POST.
  if (method === 'POST' ? origin !== ourOrigin : !isOneOf(origin, [ourOrigin])) return 'other-site'
  const isPage =
    isOneOf(headers['sec-fetch-dest'], ['document']) &&
    isOneOf(headers['sec-fetch-mode'], ['navigate'])
  return isPage ? undefined : 'embedded'
}

/** Of a browser that loads ahead what it thinks will be opened, or makes a picture of it. */
const guessHeaders = ['sec-purpose', 'purpose', 'x-purpose', 'x-moz']

const isOneOf = (value: string | string[] | undefined, allowed: readonly string[]): boolean =>
  value === undefined || (typeof value === 'string' && allowed.includes(value))
