import type { PayloadDescription } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { isPathName } from '../../shared/templates.ts'
import type { Payload } from './parse.ts'

/** Fields that name the kind of event. */
const kinds = [
  'action',
  'type',
  'event',
  'event_type',
  'event_name',
  'object_kind',
  'kind',
  'topic',
]

/** Objects that contain such a field too: `event.type` (Slack), `data.object.status` (Stripe). */
const containers = [
  'event',
  'data',
  'payload',
  'object',
  'object_attributes',
  'resource',
  'body',
  'detail',
  'record',
  'metadata',
]
const innerKinds = [...kinds, 'subtype', 'status', 'state']
const maxFilters = 4

/** Fields that are useful in a prompt, the most useful first. */
const telling = [
  'title',
  'subject',
  'text',
  'message',
  'name',
  'full_name',
  'number',
  'body',
  'description',
  'summary',
  'status',
  'state',
  'login',
  'email',
  'amount',
  'html_url',
  'url',
]
const maxProposed = 8

/** Describes a payload: its paths without values, and a suggested filter and prompt. */
export const describePayload = (webhook: string, payload: Payload): PayloadDescription => {
  const { paths, cut } = describeShape(payload)
  const filter = paths
    .filter(({ path, type }) => type === 'text' && tellsKind(path.split('.')))
    .map(({ path }) => path)
    .toSorted((a, b) => a.split('.').length - b.split('.').length)
    .slice(0, maxFilters)
  return { webhook, paths, cut, filter, promptTemplate: toTemplate(paths, filter) }
}

/** By name at the top; deeper only in objects that contain the event, as a user has a `type` too. */
const tellsKind = (names: readonly string[]): boolean => {
  const name = names.at(-1) ?? ''
  if (names.length === 1) return kinds.includes(name)
  const around = names.slice(0, -1)
  return innerKinds.includes(name) && around.every((outer) => containers.includes(outer))
}

const toTemplate = (paths: PayloadDescription['paths'], filter: readonly string[]): string => {
  const proposed = paths
    .filter(({ type }) => type !== 'null' && type !== 'list' && type !== 'object')
    .map(({ path }) => ({ path, rank: toRank(path) }))
    .filter(({ path, rank }) => rank < telling.length * 3 && !filter.includes(path))
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, maxProposed)
  const lines = [...filter, ...proposed.map(({ path }) => path)].map(
    (path) => `${path}: {{event.${path}}}`,
  )
  return `An event came in.\n\n${lines.length > 0 ? lines.join('\n') : '{{event}}'}\n\nSay in three sentences what happened.\n`
}

/** Low for useful names near the top. */
const toRank = (path: string): number => {
  const names = path.split('.')
  const place = telling.indexOf(names.at(-1) ?? '')
  return place === -1 ? Number.POSITIVE_INFINITY : place + (names.length - 1) * 4
}

const maxPaths = 500
const maxDepth = 12
const maxNameLength = 100

/**
 * The dot paths of a payload with the types of their values, and no value. Of a list only the first item is
 * included. Names that a dot path cannot contain are left out.
 */
const describeShape = (payload: Payload): Pick<PayloadDescription, 'paths' | 'cut'> => {
  const paths: { path: string; type: string }[] = []
  let cut = false
  const look = (value: unknown, names: readonly string[]): void => {
    if (paths.length >= maxPaths || names.length > maxDepth) {
      cut = true
      return
    }
    const inner = toEntries(value)
    if (names.length > 0 && (inner.length === 0 || Array.isArray(value)))
      paths.push({ path: names.join('.'), type: getType(value) })
    for (const [name, item] of inner) look(item, [...names, name])
  }
  look(payload, [])
  return { paths, cut }
}

const toEntries = (value: unknown): [string, unknown][] => {
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.length === 0 ? [] : [['0', value[0]]]
  return Object.entries(value).filter(([name]) => isPathName(name) && name.length <= maxNameLength)
}

const getType = (value: unknown): string => {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  return typeof value === 'string' ? 'text' : typeof value
}

/** Clients that wait for the next delivery of a webhook. */
export type DeliveryWaiters = {
  /** Waits for it. Throws `stopping` when the daemon stops, `interrupted` when the signal is aborted. */
  readonly wait: (webhook: string, signal: AbortSignal) => Promise<PayloadDescription>
  /** Passes a verified payload to the clients that wait for this webhook. */
  readonly show: (webhook: string, payload: Payload) => void
  readonly close: () => void
}

export const createDeliveryWaiters = (): DeliveryWaiters => {
  type Waiting = {
    readonly webhook: string
    readonly learn: (lesson: PayloadDescription) => void
    readonly give: (error: DoorwardError) => void
  }
  const waiting = new Set<Waiting>()
  return {
    wait: async (webhook, signal) =>
      new Promise((resolve, reject) => {
        const one = { webhook, learn: resolve, give: reject }
        waiting.add(one)
        const leave = () => {
          waiting.delete(one)
          reject(new DoorwardError('interrupted', 'the client no longer waits for the delivery'))
        }
        if (signal.aborted) leave()
        else signal.addEventListener('abort', leave)
      }),
    show: (webhook, payload) => {
      for (const one of waiting) {
        if (one.webhook !== webhook) continue
        waiting.delete(one)
        one.learn(describePayload(webhook, payload))
      }
    },
    close: () => {
      for (const { give } of waiting) give(new DoorwardError('stopping', 'the daemon is stopping'))
      waiting.clear()
    },
  }
}
