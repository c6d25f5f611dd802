import type { OutputAction, OutputSettings, RequestKind } from '../../../shared/targets/outputs.ts'
import type { OutputResult } from '../../../shared/api/api.ts'
import { compileTest } from '../../../shared/filter/tests.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { isEmpty, toHarmlessTitle } from '../format/parts.ts'

/*
 * Each request of an answer is checked against `outputs` of the rule, and becomes an action. A request of the wrong
 * type, one that is not allowed, or one over its count is dropped with the reason. `toActionText` makes the texts
 * harmless, as it knows the place and its links.
 */

/** The place at which the actions happen. */
export type OutputPlace = {
  readonly sender: 'github' | 'gitlab'
  /** False for an event about no issue, pull request or merge request. */
  readonly hasSubject: boolean
}

type Planned = {
  readonly actions: readonly OutputAction[]
  readonly dropped: readonly OutputResult[]
}

/** The order is that of the actions: a comment about an issue comes after its labels. */
export const planActions = (
  requests: Readonly<Record<string, unknown>>,
  settings: OutputSettings,
  place: OutputPlace,
): Planned => {
  const dropped: OutputResult[] = []
  const drop: Drop = (kind, why) => void dropped.push({ kind, state: 'dropped', why })
  const actions: OutputAction[] = []
  /** The values of a kind, where the rule has it. */
  const take = <Kind extends RequestKind>(kind: Kind, plan: Plan<Kind>) => {
    const value = Object.hasOwn(requests, kind) ? requests[kind] : undefined
    if (value === undefined || value === null) return
    const of = settings[kind]
    if (of === undefined) drop(kind, 'outputs of the rule does not have it')
    else if (!place.hasSubject && kind !== 'issue' && kind !== 'close')
      drop(kind, 'the event is about no issue, pull request or merge request')
    else actions.push(...plan([value].flat(), of, (why) => drop(kind, why)))
  }
  take('labels', (values, of, say) => {
    const labels = pickNames(values, { ...of, isSame: sameIn[place.sender], hasGlobs: true }, say)
    return labels.length === 0 ? [] : [{ kind: 'labels', labels }]
  })
  take('assign', (values, of, say) => {
    const bare = values.map((one) => (typeof one === 'string' ? one.replace(/^@/, '') : one))
    const assign = pickNames(bare, { ...of, isSame: fold, hasGlobs: false }, say)
    return assign.length === 0 ? [] : [{ kind: 'assign', assign }]
  })
  take('comment', (values, { max }, say) => {
    const bodies = values.filter((one) => typeof one === 'string' && !isEmpty(one)) as string[]
    if (bodies.length < values.length) say('a comment is a text that is not empty')
    return atMost(max, bodies, say).map((body) => ({ kind: 'comment', body }))
  })
  take('issue', (values, of, say) =>
    atMost(
      of.max,
      values.flatMap((one) => toIssue(one, of, say) ?? []),
      say,
    ),
  )
  take('close', (values, { own, max }, say) => {
    const numbers = [...new Set(values.flatMap(toNumber))]
    if (values.some((one) => toNumber(one).length === 0)) say('an issue is named by its number')
    return atMost(max, numbers, say).map((number) => ({ kind: 'close', number, own }))
  })
  return { actions, dropped }
}

type Drop = (kind: string, why: string) => void
type Plan<Kind extends RequestKind> = (
  values: readonly unknown[],
  settings: NonNullable<OutputSettings[Kind]>,
  say: (why: string) => void,
) => readonly OutputAction[]

const fold = (name: string): string => name.toLowerCase()

/** GitHub's labels are the same in capitals; GitLab's are not. */
const sameIn = { github: fold, gitlab: (name: string) => name }

type Names = {
  readonly allowed?: readonly string[] | undefined
  readonly max: number
  readonly isSame: (name: string) => string
  readonly hasGlobs: boolean
}

/** The names that are allowed, each once, as `allowed` writes them. */
const pickNames = (
  values: readonly unknown[],
  { allowed, max, isSame, hasGlobs }: Names,
  say: (why: string) => void,
): readonly string[] => {
  const names = values.flatMap((one) => (typeof one === 'string' ? toName(one) : []))
  if (names.length < values.length) say(`a name is a text of at most ${longestName} characters`)
  const known = new Map(allowed?.map((name) => [isSame(name), name]))
  const globs = hasGlobs ? [...known.keys()].filter((name) => /[*?]/.test(name)) : []
  const matches = globs.length > 0 ? compileTest('glob', globs).accepts : () => false
  const picked = new Map<string, string>()
  const refused = new Set<string>()
  for (const name of names) {
    const key = isSame(name)
    const own = known.get(key) ?? (!allowed || matches(key) ? name : undefined)
    if (own === undefined) refused.add(name)
    else if (!picked.has(key)) picked.set(key, own)
  }
  if (refused.size > 0) say(`not in allowed: ${listNames([...refused])}`)
  return atMost(max, [...picked.values()], say)
}

const longestName = 255

const toName = (text: string): string[] => {
  const name = text.length > longestName * 4 ? '' : toPlainLine(text)
  return name === '' || name.length > longestName ? [] : [name]
}

const shownNames = 5
const shownLength = 60

/** Some of the names, as they may be shown. */
export const listNames = (names: readonly string[]): string => {
  const shown = names
    .slice(0, shownNames)
    .map((name) => (name.length > shownLength ? `${name.slice(0, shownLength)}…` : name))
  const more = names.length - shown.length
  return `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

const atMost = <Value>(
  max: number,
  values: readonly Value[],
  say: (why: string) => void,
): readonly Value[] => {
  if (values.length > max) say(`${values.length - max} over max: ${max}`)
  return values.slice(0, max)
}

/** GitHub takes 256 characters, GitLab 255. */
const longestTitle = 255

const toIssue = (
  value: unknown,
  { title_prefix: prefix = '', labels = [] }: NonNullable<OutputSettings['issue']>,
  say: (why: string) => void,
): OutputAction | undefined => {
  const { title, body = '', ...rest } = { ...(value as Record<string, unknown>) }
  if (typeof title !== 'string' || isEmpty(title) || typeof body !== 'string') {
    say('an issue is an object with a title and a body, both of them texts')
    return undefined
  }
  const foreign = Object.keys(rest).map((key) => toPlainLine(key.slice(0, longestName)))
  if (foreign.length > 0) say(`an issue has only title and body: ${listNames(foreign)}`)
  const words = toHarmlessTitle(toPlainLine(title), longestTitle - prefix.length)
  const given = words.startsWith(prefix.trimEnd()) ? words : `${prefix}${words}`
  return { kind: 'issue', title: given, body, labels }
}

const toNumber = (value: unknown): number[] => {
  const number = typeof value === 'string' ? Number(/^#?(\d{1,10})$/.exec(value)?.[1]) : value
  return typeof number === 'number' && Number.isSafeInteger(number) && number > 0 ? [number] : []
}
