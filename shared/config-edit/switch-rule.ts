import { isDeepStrictEqual } from 'node:util'
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml'
import { readYaml } from '../config/yaml.ts'
import { DoorwardError } from '../errors.ts'

/** One switch of a rule; without `rule` of the whole webhook at this path. */
export type RuleSwitch = {
  readonly path: string
  readonly rule?: string | undefined
  readonly enabled?: boolean | undefined
  readonly dryRun?: boolean | undefined
}

type Entry = Readonly<Record<string, unknown>>

/**
 * The text of webhooks.yaml with a rule paused or resumed, or its dry run switched: `enabled: false` and
 * `dry_run: true` are written, and taken away again. No other character changes. Throws `webhook-not-found`, and
 * `usage` where the entry is written in a way that cannot be changed here. Pure.
 */
export const switchRule = (text: string, { path, rule, enabled, dryRun }: RuleSwitch): string => {
  const { webhooks = [] } = (readYaml('', text).value ?? {}) as { readonly webhooks?: Entry[] }
  const index = webhooks.findIndex((entry) => entry['path'] === path)
  const webhook = webhooks[index]
  if (!webhook) throw notFound(`webhooks.yaml has no webhook ${path}`)
  const rules = (webhook['rules'] ?? []) as readonly Entry[]
  const number = rules.findIndex(({ name }) => name === rule)
  if (rule !== undefined && number === -1) throw notFound(`${path} has no rule ${rule}`)
  const place = ['webhooks', index, ...(rule === undefined ? [] : ['rules', number])]
  const withEnabled =
    enabled === undefined ? text : setKey(text, place, 'enabled', enabled ? undefined : false)
  if (dryRun === undefined) return withEnabled
  // The webhook says it for all its rules.
  const inherited = rule !== undefined && webhook['dry_run'] === true
  return setKey(withEnabled, place, 'dry_run', dryRun === inherited ? undefined : dryRun)
}

/** Sets a key of the map at this place, or takes it away. */
const setKey = (
  text: string,
  place: readonly (string | number)[],
  key: string,
  value: boolean | undefined,
): string => {
  const document = parseDocument(text, { prettyErrors: false })
  const map: unknown = document.getIn(place, true)
  // Without the identity of aliases, which would make one change two.
  const expected = JSON.parse(JSON.stringify(document.toJS())) as Entry
  const target = place.reduce<unknown>((part, name) => (part as Entry)[name], expected) as Record<
    string,
    unknown
  >
  if (Object.hasOwn(target, key) ? target[key] === value : value === undefined) return text
  if (value === undefined) delete target[key]
  else target[key] = value
  const changed = isMap(map) ? changeMap(text, map, key, value) : text
  const read = readYaml('', changed)
  if (read.problems.length === 0 && isDeepStrictEqual(read.value, expected)) return changed
  throw new DoorwardError('usage', `${key} cannot be changed the way this entry is written`, {
    hint: 'change it by hand: doorward config edit webhooks',
  })
}

const changeMap = (text: string, map: YAMLMap, key: string, value: boolean | undefined): string => {
  const at = map.items.findIndex((pair) => isScalar(pair.key) && pair.key.value === key)
  const own = map.items[at]
  if (own && value !== undefined)
    return `${text.slice(0, startOf(own.value))}${value}${text.slice(endOf(own))}`
  if (own) return map.flow ? removeInline(text, map, at) : removeLines(text, map, at)
  const [first] = map.items
  return first && value !== undefined ? addAfter(text, map, first, `${key}: ${value}`) : text
}

/** Behind the first key, which is `path` or `name`. */
const addAfter = (text: string, map: YAMLMap, first: Pair, words: string): string => {
  const end = endOf(first)
  if (map.flow) return `${text.slice(0, end)}, ${words}${text.slice(end)}`
  const start = startOf(first.key)
  const column = start - lineStart(text, start)
  const lineEnd = nextLine(text, end)
  const eol = text.slice(0, lineEnd).endsWith('\r\n') ? '\r\n' : '\n'
  const before = text.slice(0, lineEnd)
  const separator = before.endsWith('\n') ? '' : eol
  return `${before}${separator}${' '.repeat(column)}${words}${eol}${text.slice(lineEnd)}`
}

/** In braces: with the comma that goes with it. */
const removeInline = (text: string, { items }: YAMLMap, at: number): string => {
  const [before, own, after] = [items[at - 1], items[at], items[at + 1]]
  if (!own) return text
  if (after) return text.slice(0, startOf(own.key)) + text.slice(startOf(after.key))
  return before ? text.slice(0, endOf(before)) + text.slice(endOf(own)) : text
}

/** With its line; the first key of an entry shares one with the dash. */
const removeLines = (text: string, { items }: YAMLMap, at: number): string => {
  const [own, after] = [items[at], items[at + 1]]
  if (!own) return text
  const start = startOf(own.key)
  const line = lineStart(text, start)
  if (text.slice(line, start).trim() === '')
    return text.slice(0, line) + text.slice(nextLine(text, endOf(own)))
  return after ? text.slice(0, start) + text.slice(startOf(after.key)) : text
}

const startOf = (node: unknown): number =>
  (node as { readonly range?: readonly number[] } | null)?.range?.[0] ?? 0
const endOf = ({ value }: Pair): number =>
  (value as { readonly range?: readonly number[] } | null)?.range?.[1] ?? 0
const lineStart = (text: string, offset: number): number => text.lastIndexOf('\n', offset - 1) + 1

/** The offset at which the next line begins. */
const nextLine = (text: string, offset: number): number => {
  if (text[offset - 1] === '\n') return offset
  const end = text.indexOf('\n', offset)
  return end === -1 ? text.length : end + 1
}

const notFound = (what: string): DoorwardError =>
  new DoorwardError('webhook-not-found', what, { hint: 'doorward webhook list' })
