import { distance } from 'fastest-levenshtein'
import { valueConditions } from '../filter/conditions.ts'
import { each, formatBelow, formatPath, type Path } from '../paths.ts'
import { readPayloads, type SamplePayload } from './samples.ts'
import { type Rule, scopePaths } from '../config/rule.ts'
import { type Fault, faultAbout } from '../config/warning.ts'
import type { Webhook } from '../config/webhook.ts'

/*
 * Misspelt paths: `pull_request.drafft`. Payloads differ, and a sender may add fields, so a path is only doubted
 * where the built-in payloads have its parent, and there a field with nearly the same name.
 */

/** A function that finds such paths in rules. It reads the payloads of a sender once. */
export const createPathCheck = (): ((rule: Rule, webhook: Webhook) => Fault[]) => {
  const read = new Map<string, SamplePayload[]>()
  return (rule, { path: webhook, scheme: { name: sender } }) => {
    const paths = pathsOf(rule)
    if (paths.size === 0) return []
    const samples = read.get(sender) ?? readPayloads(sender)
    read.set(sender, samples)
    const payloads = samples.filter((sample) => fits(sample, rule)).map(({ payload }) => payload)
    return [...paths].flatMap(([text, { path, write }]) => {
      const meant = findMeantPath(payloads, path)
      // Without `on` an event may come that has no sample, and such a field: `commit` beside `comment`.
      if (!meant || (rule.on === undefined && meant[0] !== path[0])) return []
      return faultAbout({ webhook })(
        'path-unknown',
        `${text} is in no built-in sample of its events`,
        `did you mean "${write(meant)}"? doorward webhook learn ${webhook} shows what the next delivery has`,
      )
    })
  }
}

type Written = { readonly path: Path; readonly write: (path: Path) => string }

/** The paths into the payload, each once, by the text that a warning shows. */
const pathsOf = (rule: Rule): Map<string, Written> => {
  const conditions = valueConditions(rule.filter)
    .filter(({ path: [root, ...rest] }) => root === 'event' && rest.length > 0)
    .map(({ text, path }): [string, Written] => [
      `${text} in filter`,
      { path: path.slice(1), write: formatPath },
    ])
  const templates = scopePaths({ ...rule, filter: [] })
    .filter(([root, ...rest]) => root === 'event' && rest.length > 0)
    .map(([, ...path]): [string, Written] => [
      `{{${formatBelow('event', path)}}}`,
      { path, write: (meant) => formatBelow('event', meant) },
    ])
  return new Map([...conditions, ...templates])
}

/** Actions of one event have payloads of the same form: `pull_request.closed` and `pull_request.opened`. */
const fits = ({ event }: SamplePayload, { on }: Rule): boolean =>
  on === undefined || on.some((name) => name.split('.', 1)[0] === event)

/** The path that is probably meant by one that no payload has. */
const findMeantPath = (payloads: readonly unknown[], path: Path): Path | undefined => {
  const misses = payloads.map((payload) => findMiss(payload, path))
  const at = misses.reduce((most, miss) => Math.max(most, miss?.at ?? -1), -1)
  const furthest = misses.filter((miss) => miss?.at === at)
  const name = path[at]
  // Some payload has it, or has null, a list without items or a text where the parent should be.
  if (misses.includes(undefined) || furthest.some((miss) => miss?.siblings.length === 0))
    return undefined
  if (typeof name !== 'string') return undefined
  return furthest
    .flatMap((miss) => miss?.siblings ?? [])
    .filter((sibling) => isNear(name, sibling))
    .toSorted((a, b) => distance(name, a) - distance(name, b))
    .map((sibling) => path.with(at, sibling))
    .find((meant) => payloads.some((payload) => findMiss(payload, meant) === undefined))
}

type Miss = { readonly at: number; readonly siblings: readonly string[] }

/** Where a payload does not have the path any more, with the names that it has there; undefined where it has all of it. */
const findMiss = (payload: unknown, path: Path): Miss | undefined => {
  let values = [payload]
  for (const [at, name] of path.entries()) {
    const next = values.flatMap((value) => step(value, name))
    if (next.length === 0) {
      const siblings = values.flatMap((value) => (isMap(value) ? Object.keys(value) : []))
      return { at, siblings }
    }
    values = next
  }
  return undefined
}

/** An index stands for any item: samples have few. */
const step = (value: unknown, name: Path[number]): unknown[] => {
  if (Array.isArray(value)) return name === each || /^\d+$/.test(name) ? value : []
  return isMap(value) && name !== each && Object.hasOwn(value, name) ? [value[name]] : []
}

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** One letter more, less or other; two in longer names, or two that changed places. */
const isNear = (given: string, known: string): boolean => {
  const changes = distance(given, known)
  if (given.length < 3 || changes > 2) return false
  return changes === 1 || given.length > 5 || sorted(given) === sorted(known)
}

const sorted = (word: string): string => word.split('').toSorted().join('')
