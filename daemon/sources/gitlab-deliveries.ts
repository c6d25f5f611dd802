import type { HookRef } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { textAt, valueAt } from '../util/payload-path.ts'
import { type ApiRequest, goneHint, parseText } from './api-request.ts'
import { type ListedDelivery, maxListed, type Past, type PastDelivery } from './source.ts'

/** GitLab refuses more. */
const perPage = 20

/**
 * The deliveries that GitLab keeps for seven days (docs.gitlab.com/api/project_webhooks), since version 17.3.
 * Its list has them whole, the newest first; there is none of one delivery, so its page is read again. Mail
 * addresses in them are replaced by `[REDACTED]`.
 */
export const gitlabDeliveries = (
  request: ApiRequest,
  hooksOf: (name: string, signal: AbortSignal) => Promise<string>,
): Past => {
  const eventsOf = async ({ repository, hookId }: HookRef, signal: AbortSignal) =>
    `${await hooksOf(repository, signal)}/${hookId}/events`
  const readPage = async (path: string, page: number, size: number, signal: AbortSignal) => {
    const query = `?per_page=${size}&page=${page}`
    const { text, headers } = await request(`${path}${query}`, { signal, isLarge: true, hints })
    const items = parseText(text)
    if (!Array.isArray(items)) throw new DoorwardError('source-failed', 'GitLab returned no list')
    return { items: items as readonly unknown[], nowMs: Date.parse(headers['date'] ?? '') }
  }
  return {
    list: async (hook, { ms: sinceMs }, signal) => {
      const path = await eventsOf(hook, signal)
      const deliveries: PastDelivery[] = []
      let nowMs = Number.NaN
      let isWhole = false
      for (let page = 1; !isWhole && page <= maxListed / perPage; page += 1) {
        const listed = await readPage(path, page, sinceMs === undefined ? 1 : perPage, signal)
        if (page === 1) nowMs = listed.nowMs
        const read = sinceMs === undefined ? [] : listed.items.flatMap(toPastDelivery(page))
        const recent = read.filter(({ at }) => Date.parse(at) >= (sinceMs ?? 0))
        deliveries.push(...recent)
        isWhole =
          sinceMs === undefined || recent.length < read.length || listed.items.length < perPage
      }
      return { deliveries, nowMs: Number.isNaN(nowMs) ? Date.now() : nowMs, isWhole }
    },
    fetch: async (hook, place, signal) => {
      const path = await eventsOf(hook, signal)
      const [first = 1, id = 0] = place.split(':').map(Number)
      // What came since pushes it to a later page.
      for (let page = first; page <= maxListed / perPage; page += 1) {
        const { items } = await readPage(path, page, perPage, signal)
        const item = items.find((each) => valueAt(each, ['id']) === id)
        if (item) return toFetched(item)
        if (items.length < perPage || items.every((each) => Number(valueAt(each, ['id'])) < id))
          break
      }
      return undefined
    },
  }
}

const hints = { 404: `${goneHint}; before GitLab 17.3 there is no such list: write catch_up: off` }

const toFetched = (item: unknown) => {
  const data = valueAt(item, ['request_data'])
  if (typeof data !== 'object' || data === null || isOversize(data)) return undefined
  const rawHeaders = headersOf(item).flatMap(([name, value]) =>
    typeof value === 'string' && !/^(content-|x-gitlab-token$)/i.test(name) ? [name, value] : [],
  )
  return {
    rawHeaders: [...rawHeaders, 'content-type', 'application/json'],
    bytes: Buffer.from(JSON.stringify(data)),
  }
}

/** What GitLab keeps in place of a payload that is too large. */
const isOversize = (data: object): boolean =>
  Object.keys(data).length === 1 && valueAt(data, ['oversize']) === true

const toPastDelivery =
  (page: number) =>
  (item: unknown): PastDelivery[] => {
    const id = valueAt(item, ['id'])
    const action = textAt(item, 'request_data', 'object_attributes', 'action')
    if (typeof id !== 'number') return []
    return toDelivery(item).map((delivery) => ({
      ...delivery,
      id: `${page}:${id}`,
      isAccepted: delivery.answer === '202',
      ...(action !== undefined && { action }),
    }))
  }

/** What names a delivery, in the order of the scheme. */
const idHeaders = ['webhook-id', 'idempotency-key', 'x-gitlab-event-uuid']

const headersOf = (item: unknown) => Object.entries(valueAt(item, ['request_headers']) ?? {})

export const toDelivery = (item: unknown): ListedDelivery[] => {
  const at = textAt(item, 'created_at')
  const headers = headersOf(item)
  const [deliveryId] = idHeaders.flatMap((name) =>
    headers.flatMap(([key, value]) =>
      key.toLowerCase() === name && typeof value === 'string' ? [value] : [],
    ),
  )
  if (at === undefined || deliveryId === undefined) return []
  const answer = toPlainLine(String(valueAt(item, ['response_status']) ?? '')).slice(0, 100)
  const trigger = (textAt(item, 'trigger') ?? '').replace(/_hooks$/, '')
  const event = textAt(item, 'request_data', 'object_kind') ?? trigger
  return [{ deliveryId, at, event, isOk: /^2\d\d$/.test(answer), answer }]
}
