import type { PayloadDescription } from '../../shared/api/explain.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { formatBelow, formatPath } from '../../shared/paths.ts'
import type { Payload } from './body.ts'

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
const maxEvents = 10

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

type Names = readonly string[]
type Described = { readonly names: Names; readonly type: string }

/** Describes a payload: its paths without values, and a suggested filter and prompt; `on` names its events. */
export const describePayload = (
  webhook: string,
  payload: Payload,
  events: readonly string[] = [],
): PayloadDescription => {
  const { values, cut } = describeShape(payload)
  const filter = values
    .filter(({ names, type }) => type === 'text' && tellsKind(names))
    .map(({ names }) => names)
    .toSorted((a, b) => a.length - b.length)
    .slice(0, maxFilters)
  return {
    webhook,
    paths: values.map(({ names, type }) => ({ path: formatPath(names), type })),
    cut,
    ...(events.length > 0 && { on: events.slice(0, maxEvents) }),
    filter: filter.map(formatPath),
    promptTemplate: toTemplate(values, filter),
  }
}

/** By name at the top; deeper only in objects that contain the event, as a user has a `type` too. */
const tellsKind = (names: Names): boolean => {
  const name = names.at(-1) ?? ''
  if (names.length === 1) return kinds.includes(name)
  const around = names.slice(0, -1)
  return innerKinds.includes(name) && around.every((outer) => containers.includes(outer))
}

const toTemplate = (values: readonly Described[], filter: readonly Names[]): string => {
  const proposed = values
    .filter(({ type }) => type !== 'null' && type !== 'list' && type !== 'object')
    .map(({ names }) => ({ names, rank: toRank(names) }))
    .filter(({ names, rank }) => rank < telling.length * 3 && !filter.includes(names))
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, maxProposed)
  const lines = [...filter, ...proposed.map(({ names }) => names)].map(
    (names) => `${formatPath(names)}: {{${formatBelow('event', names)}}}`,
  )
  return `An event came in.\n\n${lines.length > 0 ? lines.join('\n') : '{{event}}'}\n\nSay in three sentences what happened.\n`
}

/** Low for useful names near the top. */
const toRank = (names: Names): number => {
  const place = telling.indexOf(names.at(-1) ?? '')
  return place === -1 ? Number.POSITIVE_INFINITY : place + (names.length - 1) * 4
}

const maxPaths = 500
const maxDepth = 12
const maxNameLength = 100

/**
 * The paths of a payload with the types of their values, and no value. Of a list only the first item is
 * included. Names that a placeholder cannot contain are left out.
 */
const describeShape = (payload: Payload): { values: Described[]; cut: boolean } => {
  const values: Described[] = []
  let cut = false
  const look = (value: unknown, names: Names): void => {
    if (values.length >= maxPaths || names.length > maxDepth) {
      cut = true
      return
    }
    const inner = toEntries(value)
    if (names.length > 0 && (inner.length === 0 || Array.isArray(value)))
      values.push({ names, type: getType(value) })
    for (const [name, item] of inner) look(item, [...names, name])
  }
  look(payload, [])
  return { values, cut }
}

const toEntries = (value: unknown): [string, unknown][] => {
  if (typeof value !== 'object' || value === null) return []
  if (Array.isArray(value)) return value.length === 0 ? [] : [['0', value[0]]]
  return Object.entries(value).filter(([name]) => isReadable(name) && name.length <= maxNameLength)
}

const isReadable = (name: string): boolean => name !== '' && !/[{}\p{Cc}]/u.test(name)

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
  readonly show: (webhook: string, payload: Payload, getEvents: () => readonly string[]) => void
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
    show: (webhook, payload, getEvents) => {
      for (const one of waiting) {
        if (one.webhook !== webhook) continue
        waiting.delete(one)
        one.learn(describePayload(webhook, payload, getEvents()))
      }
    },
    close: () => {
      for (const { give } of waiting) give(new DoorwardError('stopping', 'the daemon is stopping'))
      waiting.clear()
    },
  }
}
