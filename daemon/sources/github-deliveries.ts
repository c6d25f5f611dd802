import type { HookRef } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import { type ApiRequest, goneHint, nextPath, parseText } from './api-request.ts'
import { type ListedDelivery, maxListed, type Past, type PastDelivery } from './source.ts'

const perPage = 100

/**
 * The deliveries that GitHub keeps for three days (docs.github.com/rest/repos/webhooks). It lists the newest
 * first and filters by no time; one can appear minutes after it was sent.
 */
export const githubDeliveries = (request: ApiRequest, baseUrl: string): Past => ({
  list: async (hook, { ms: sinceMs, etag }, signal) => {
    const deliveries: PastDelivery[] = []
    let nowMs = Number.NaN
    let newEtag: string | undefined
    let path: string | undefined =
      `${deliveriesOf(hook)}?per_page=${sinceMs === undefined ? 1 : perPage}`
    for (let page = 1; path !== undefined && page <= maxListed / perPage; page += 1) {
      const given = page === 1 ? etag : undefined
      const options = { signal, isLarge: true, etag: given, handles: [304], hints }
      const { status, text, headers } = await request(path, options)
      if (status === 304) return 'same'
      if (page === 1) {
        nowMs = Date.parse(headers['date'] ?? '')
        newEtag = headers.etag
      }
      const items = parseText(text)
      if (!Array.isArray(items)) throw new DoorwardError('source-failed', 'GitHub returned no list')
      if (sinceMs === undefined) break
      const read = (items as unknown[]).flatMap(toPastDelivery)
      const recent = read.filter(({ at }) => Date.parse(at) >= sinceMs)
      deliveries.push(...recent)
      path =
        recent.length < read.length ? undefined : nextPath(headers['link']?.toString(), baseUrl)
    }
    const isWhole = path === undefined || sinceMs === undefined
    return {
      deliveries,
      nowMs: Number.isNaN(nowMs) ? Date.now() : nowMs,
      isWhole,
      ...(newEtag !== undefined && sinceMs !== undefined && { etag: newEtag }),
    }
  },
  fetch: async (hook, id, signal) => {
    const path = `${deliveriesOf(hook)}/${encodeURIComponent(id)}`
    const { status, text } = await request(path, {
      signal,
      isLarge: true,
      handles: [404, 410],
      hints,
    })
    if (status === 404 || status === 410) return undefined
    const document = parseText(text)
    const payload = valueAt(document, ['request', 'payload'])
    const headers = valueAt(document, ['request', 'headers'])
    if (typeof payload !== 'object' || payload === null) return undefined
    const sent = Object.entries(typeof headers === 'object' && headers !== null ? headers : {})
    const rawHeaders = sent.flatMap(([name, value]) =>
      typeof value === 'string' && !/^content-/i.test(name) ? [name, value] : [],
    )
    return {
      rawHeaders: [...rawHeaders, 'content-type', 'application/json'],
      bytes: Buffer.from(JSON.stringify(payload)),
    }
  },
})

const hints = { 404: goneHint }

export const hooksOf = (repository: string): string =>
  repository.includes('/') ? `/repos/${repository}/hooks` : `/orgs/${repository}/hooks`

const deliveriesOf = ({ repository, hookId }: HookRef): string =>
  `${hooksOf(repository)}/${hookId}/deliveries`

const toPastDelivery = (item: unknown): PastDelivery[] => {
  const id = valueAt(item, ['id'])
  const action = textAt(item, 'action')
  if (typeof id !== 'number' && typeof id !== 'string') return []
  return toDelivery(item).map((delivery) => ({
    ...delivery,
    id: String(id),
    isAccepted: valueAt(item, ['status_code']) === 202,
    ...(action !== undefined && { action }),
  }))
}

export const toDelivery = (item: unknown): ListedDelivery[] => {
  const deliveryId = textAt(item, 'guid')
  const at = textAt(item, 'delivered_at')
  if (deliveryId === undefined || at === undefined) return []
  const status = textAt(item, 'status') ?? ''
  const code = valueAt(item, ['status_code'])
  return [
    {
      deliveryId,
      at,
      event: textAt(item, 'event') ?? '',
      isOk: typeof code === 'number' && code >= 200 && code < 300,
      answer: toPlainLine(`${typeof code === 'number' && code > 0 ? code : ''} ${status}`).slice(
        0,
        100,
      ),
    },
  ]
}
