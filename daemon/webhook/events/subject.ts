import { readFileSync } from 'node:fs'
import type { EventRecord } from '../../../shared/api/api.ts'
import type { Template } from '../../../shared/templates.ts'
import { toPageUrl } from '../../../shared/net.ts'
import { cut, toPlainLine, toPlainText } from '../../../shared/text.ts'
import { packageFolder } from '../../../shared/version.ts'
import { textOfValue, valueAt } from '../../util/payload-path.ts'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import type { Payload } from '../body.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import type { EventScope, ReadDelivery } from '../read-delivery.ts'
import { getEventNames, listItems, showEventNames } from '../rules/choose.ts'
import { showAll } from '../sanitize.ts'

/*
 * What an event is about: a pull request, an invoice, a message. The table of assets/subjects.json says by scheme
 * where a payload has it; the first entry counts whose key is in the payload. Texts of a payload go into the
 * record of an event only, never into a log, a file or a metric.
 */

export type Subject = NonNullable<EventRecord['subject']>

type Text = readonly (string | Place)[]
type Place = { readonly path: readonly string[]; readonly length: number | undefined }

type Entry = {
  /** Applies only where the payload has something here, or exactly this value. */
  readonly when:
    { readonly path: readonly string[]; readonly value: string | undefined } | undefined
  readonly kind: Text
  readonly key: Text
  readonly title: Text
  readonly url: Text
}

type WrittenEntry = { readonly [Field in 'when' | 'kind' | 'key' | 'title' | 'url']?: string }

/** `{pull_request.number}`, or `{after:7}` for its first seven characters. */
const parseText = (text = ''): Text =>
  text
    .split(/(\{[^}]+\})/)
    .filter((part) => part !== '')
    .map((part) => {
      if (!part.startsWith('{')) return part
      const [dots = '', length] = part.slice(1, -1).split(':')
      return { path: dots.split('.'), length: length === undefined ? undefined : Number(length) }
    })

const parseEntry = ({ when, kind, key, title, url }: WrittenEntry): Entry => {
  const [dots = '', value] = when?.split('=') ?? []
  return {
    when: when === undefined ? undefined : { path: dots.split('.'), value },
    kind: parseText(kind),
    key: parseText(key),
    title: parseText(title),
    url: parseText(url),
  }
}

let table: ReadonlyMap<string, readonly Entry[]> | undefined

const readTable = (): ReadonlyMap<string, readonly Entry[]> => {
  const text = readFileSync(new URL('assets/subjects.json', packageFolder), 'utf8')
  const written = JSON.parse(text) as Readonly<Record<string, readonly WrittenEntry[]>>
  return new Map(Object.entries(written).map(([name, entries]) => [name, entries.map(parseEntry)]))
}

type Described = Pick<ReadDelivery, 'headers' | 'payload' | 'scope' | 'signed' | 'source'> & {
  readonly webhook: Pick<ReadDelivery['webhook'], 'scheme'>
}

/** The subject of a delivery, with the title that its rule gives it; undefined where nothing names one. */
export const describeSubject = (
  { webhook: { scheme }, headers, payload, scope, signed, source }: Described,
  rule: Pick<CompiledRule, 'title'> | undefined,
): Subject | undefined => {
  const named =
    withMore(findSubject(scheme.name, payload), scheme, payload) ??
    toNamed(showEventNames(getEventNames(scheme, headers, payload)))
  // Without a signature a stranger chooses what a click opens.
  const found = named && !signed && source === undefined ? { ...named, url: undefined } : named
  const title = rule?.title && toLine(expand(rule.title, scope), widest)
  if (title === undefined || title === '') return found
  return { ...(found ?? { key: title, kind: 'event' }), title }
}

/** The table names the first event of a body with several. */
const withMore = (
  first: Subject | undefined,
  { event }: Pick<SignatureScheme, 'event'>,
  payload: Payload,
): Subject | undefined => {
  const more = event ? listItems(event, payload).length - 1 : 0
  if (!first || more < 1) return first
  const counted = ` and ${more} more`
  return { ...first, title: cut(first.title, widest - counted.length) + counted }
}

const toNamed = (name: string | undefined): Subject | undefined =>
  name === undefined ? undefined : toSubject({ key: name, title: '', kind: 'event', url: '' })

const findSubject = (scheme: string, payload: Payload): Subject | undefined => {
  table ??= readTable()
  for (const entry of table.get(scheme) ?? []) {
    const subject = readEntry(entry, payload)
    if (subject) return subject
  }
  return undefined
}

const expand = ({ parts }: Template, scope: EventScope): string =>
  parts
    .map((part) => (typeof part === 'string' ? part : textOfValue(valueAt(scope, part))))
    .join('')

const readEntry = ({ when, ...entry }: Entry, payload: Payload): Subject | undefined => {
  if (when) {
    const found = valueAt(payload, when.path) ?? undefined
    if (found === undefined || (when.value !== undefined && when.value !== found)) return undefined
  }
  const key = fill(entry.key, payload)
  if (key === undefined) return undefined
  return toSubject({
    key,
    title: fill(entry.title, payload) ?? '',
    url: fill(entry.url, payload) ?? '',
    kind: (fill(entry.kind, payload) ?? 'event').replaceAll('_', ' '),
  })
}

/** Undefined where a value is missing. */
const fill = (text: Text, payload: Payload): string | undefined => {
  let filled = ''
  for (const part of text) {
    if (typeof part === 'string') {
      filled += part
      continue
    }
    const value = textAtPath(payload, part.path)
    if (value === undefined) return undefined
    filled += value.slice(0, part.length ?? longest + 1)
  }
  return filled
}

/** Of a value nothing beyond this is read. */
const longest = 2048

const textAtPath = (payload: Payload, path: readonly string[]): string | undefined => {
  const value = valueAt(payload, path)
  if (value === undefined || value === '' || typeof value === 'object') return undefined
  return textOfValue(value)
}

/** Columns of a terminal. */
const widest = 120
const widestKey = 80

const toSubject = (found: Required<Subject>): Subject => {
  const key = toLine(found.key, widestKey)
  const title = toLine(`${key} ${found.title}`, widest)
  const url = toPageUrl(found.url)
  return { key, title, kind: toLine(found.kind, 30), ...(url !== undefined && { url }) }
}

/** One line of ASCII, without two spaces in a row. */
const isPlain = /^(?:[!-~]| (?! ))*$/

/** The first line with something in it, without what nobody sees, and no wider than this. */
const toLine = (text: string, columns: number): string => {
  // Most are.
  if (text.length <= columns && isPlain.test(text)) return text.trim()
  const [line = ''] = showAll(toPlainText(text.slice(0, longest)))
    .trimStart()
    .split('\n', 1)
  return cut(toPlainLine(line), columns)
}
