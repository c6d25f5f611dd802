import type { Lesson } from '../../shared/api.ts'
import type { Payload } from './parse.ts'
import { shapeOf } from './shape.ts'

/** Fields in which senders say what kind of event it is. */
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

/** Below these a sender says the same of what the event is about: `event.type` (Slack), `data.object.status` (Stripe). */
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

/** Fields that a prompt is likely to want, the likeliest first. */
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

/** What a payload teaches about its sender: its paths without values, and a filter and a prompt to begin with. */
export const lessonOf = (webhook: string, payload: Payload): Lesson => {
  const { paths, cut } = shapeOf(payload)
  const filter = paths
    .filter(({ path, type }) => type === 'text' && tellsKind(path.split('.')))
    .map(({ path }) => path)
    .toSorted((a, b) => a.split('.').length - b.split('.').length)
    .slice(0, maxFilters)
  return { webhook, paths, cut, filter, promptTemplate: templateOf(paths, filter) }
}

/** At the top by its name alone; deeper down only in what carries the event, for a user has a `type` too. */
const tellsKind = (names: readonly string[]): boolean => {
  const name = names.at(-1) ?? ''
  if (names.length === 1) return kinds.includes(name)
  const around = names.slice(0, -1)
  return innerKinds.includes(name) && around.every((outer) => containers.includes(outer))
}

const templateOf = (paths: Lesson['paths'], filter: readonly string[]): string => {
  const proposed = paths
    .filter(({ type }) => type !== 'null' && type !== 'list' && type !== 'object')
    .map(({ path }) => ({ path, rank: rankOf(path) }))
    .filter(({ path, rank }) => rank < telling.length * 3 && !filter.includes(path))
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, maxProposed)
  const lines = [...filter, ...proposed.map(({ path }) => path)].map(
    (path) => `${path}: {{event.${path}}}`,
  )
  return `An event came in.\n\n${lines.length > 0 ? lines.join('\n') : '{{event}}'}\n\nSay in three sentences what happened.\n`
}

/** Low for telling names near the top. */
const rankOf = (path: string): number => {
  const names = path.split('.')
  const place = telling.indexOf(names.at(-1) ?? '')
  return place === -1 ? Number.POSITIVE_INFINITY : place + (names.length - 1) * 4
}
