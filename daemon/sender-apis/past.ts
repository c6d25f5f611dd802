import type { IncomingHttpHeaders } from 'node:http'
import type { FetchedDelivery } from '../webhook/pipeline.ts'
import { maxListed, type PastDeliveries, type PastDelivery } from './sender-api.ts'

type Page = {
  readonly deliveries: readonly PastDelivery[]
  readonly headers: IncomingHttpHeaders
  readonly hasMore: boolean
}

/**
 * Reads a list of deliveries page by page, back to a time at the sender: senders list the newest first. Only
 * the first page may be `same`.
 */
export const listPast = async (
  sinceMs = Infinity,
  perPage: number,
  readPage: (page: number) => Promise<Page | 'same'>,
): Promise<PastDeliveries | 'same'> => {
  const deliveries: PastDelivery[] = []
  let first: IncomingHttpHeaders | undefined
  let isWhole = false
  for (let page = 1; !isWhole && page <= maxListed / perPage; page += 1) {
    const read = await readPage(page)
    if (read === 'same') return 'same'
    first ??= read.headers
    const recent = read.deliveries.filter(({ at }) => Date.parse(at) >= sinceMs)
    deliveries.push(...recent)
    isWhole = recent.length < read.deliveries.length || !read.hasMore
  }
  const { date = '', etag } = first ?? {}
  const nowMs = Date.parse(date) || Date.now()
  return { deliveries, nowMs, isWhole, ...(etag !== undefined && { etag }) }
}

/** A delivery of its payload and headers; undefined where the sender has no payload any more. */
export const toFetched = (payload: unknown, headers: unknown): FetchedDelivery | undefined => {
  if (typeof payload !== 'object' || payload === null) return undefined
  const sent = Object.entries(typeof headers === 'object' && headers !== null ? headers : {})
  const rawHeaders = sent.flatMap(([name, value]) =>
    typeof value === 'string' && !/^(content-|x-gitlab-token$)/i.test(name) ? [name, value] : [],
  )
  return {
    rawHeaders: [...rawHeaders, 'content-type', 'application/json'],
    bytes: Buffer.from(JSON.stringify(payload)),
  }
}
