import { DoorwardError } from '../../shared/errors.ts'
import { eventStates } from '../../shared/event-states.ts'
import { parseMilliseconds } from '../../shared/text.ts'
import { type HistoryQuery, isCursor } from './history-search.ts'

type Query = { readonly [name: string]: string | string[] | undefined }

/** These parameters, each at most once. Throws `request-invalid`. */
export const onlyOne = <Name extends string>(
  query: Query,
  names: readonly Name[],
): { readonly [K in Name]?: string } => {
  const values: { [K in Name]?: string } = {}
  for (const name of names) {
    const value = query[name]
    if (value === undefined) continue
    if (typeof value !== 'string') throw invalid(`${name} is given more than once`)
    values[name] = value
  }
  return values
}

const names = ['since', 'until', 'webhook', 'rule', 'state', 'q', 'limit', 'cursor'] as const

/** The query of `GET /events`. Throws `request-invalid`. */
export const parseEventQuery = (parameters: Query): HistoryQuery => {
  const { since, until, webhook, rule, state, q, limit, cursor } = onlyOne(parameters, names)
  if (state !== undefined && !(eventStates as readonly string[]).includes(state))
    throw invalid(`state is not one of ${eventStates.join(', ')}`)
  if (cursor !== undefined && !isCursor(cursor)) throw invalid('cursor is none of a list')
  if (q !== undefined && (q === '' || q.length > 200))
    throw invalid('q has not 1 to 200 characters')
  return {
    limit: parseLimit(limit),
    ...(since !== undefined && { since: parseSince(since) }),
    ...(until !== undefined && { until: parseSince(until, 'until') }),
    ...(webhook !== undefined && { webhook }),
    ...(rule !== undefined && { rule }),
    ...(state !== undefined && { state }),
    ...(q !== undefined && { text: q }),
    ...(cursor !== undefined && { cursor }),
  }
}

/** Whether a list is of the events in memory, as nothing asks for others. */
export const isOfMemory = ({ since, until, rule, text, cursor }: HistoryQuery): boolean =>
  [since, until, rule, text, cursor].every((value) => value === undefined)

const parseLimit = (value: string | undefined): number => {
  if (value === undefined) return 100
  if (/^[1-9]\d{0,5}$/.test(value)) return Number(value)
  throw invalid('limit is not a number from 1 to 999999')
}

/** `30d`, or a day or time in ISO 8601. */
export const parseSince = (text: string, name = 'since'): Date => {
  const ago = parseMilliseconds(text)
  const isDay = /^\d{4}-\d{2}-\d{2}$/.test(text)
  const at = new Date(Number.isNaN(ago) ? (isDay ? `${text}T00:00` : text) : Date.now() - ago)
  if (Number.isNaN(at.getTime()) || at.getFullYear() < 2000 || at.getFullYear() > 9999)
    throw invalid(`${name} is no time such as 30d, 12h or 2026-06-01`)
  return at
}

const invalid = (message: string) => new DoorwardError('request-invalid', message)
