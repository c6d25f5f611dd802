import { z } from 'zod'
import { DoorwardError } from '../errors.ts'
import { each, parsePath, type Path } from '../paths.ts'
import { checkScopePath } from '../templates.ts'
import { type Doubt, findPathDoubts, findValueDoubts } from './doubts.ts'
import { compileTest, type Operator, operators, type Test } from './tests.ts'
import type { YamlPath } from '../config/yaml.ts'

/*
 * The filter of a rule: its schema, and how it is compiled once when the configuration is loaded.
 */

/** YAML would round a larger number, and the filter would match others. */
const exactNumber = z
  .number()
  .refine((value) => !Number.isInteger(value) || Number.isSafeInteger(value), {
    error: 'the number is too large to be exact: put it in quotes',
  })
const scalar = z.union([z.string(), exactNumber, z.boolean()])
const scalars = z.union([scalar, z.array(scalar).min(1)])
const texts = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)])

const testsSchema = z.strictObject({
  is: scalars.optional().describe('The value, compared as text; a list means any.'),
  not: scalars.optional().describe('Another value, or none.'),
  in: scalars.optional().describe('One of these values.'),
  not_in: scalars.optional().describe('None of these values.'),
  glob: texts
    .optional()
    .describe('A text with * for any characters but /, ** for any, and ? for one.'),
  regex: texts
    .optional()
    .describe('A regular expression (RE2) that is found in the text; ^ and $ for all of it.'),
  contains: scalars
    .optional()
    .describe('A text that the value contains, or an item of the list that it is.'),
  exists: z.boolean().optional().describe('Whether there is a value other than null.'),
  above: z.number().optional().describe('The value is a larger number.'),
  below: z.number().optional().describe('The value is a smaller number.'),
})

type Scalar = z.output<typeof scalar>
type Tests = z.output<typeof testsSchema>
type Expected = Scalar | Scalar[] | Tests
export type FilterEntry = { [path: string]: Expected | FilterEntry[] }

const groupOf = (name: string, meaning: string) =>
  z
    .array(
      z.lazy(() => filterSchema),
      {
        error: ({ code }) =>
          code === 'invalid_type'
            ? `must be a list of maps; a field of that name is written ["${name}"]`
            : undefined,
      },
    )
    .min(1)
    .optional()
    .describe(meaning)

export const filterSchema: z.ZodType<FilterEntry> = z
  .object({
    any: groupOf('any', 'Maps like the filter, of which at least one matches.'),
    none: groupOf('none', 'Maps like the filter, of which none matches.'),
  })
  .catchall(z.union([scalar, z.array(scalar).min(1), testsSchema]))
  .meta({ id: 'filter' })

/** All conditions of a filter must match. */
export type Filter = readonly Condition[]

export type Condition = ValueCondition | GroupCondition

export type ValueCondition = {
  readonly kind: 'value'
  /** The path as it is written. */
  readonly text: string
  /** The path from the scope of an event: it begins with `event` or `headers`. */
  readonly path: Path
  /** True for a path with `[*]`, where any of several values counts. */
  readonly isList: boolean
  readonly tests: readonly Test[]
  /** Words that are valid but probably not what is meant. */
  readonly doubts: readonly Doubt[]
}

export type GroupCondition = {
  readonly kind: 'any' | 'none'
  readonly text: string
  readonly filters: readonly Filter[]
}

/** The place of a filter in its file; keys are relative to it. */
export type FilterPlace = {
  readonly report: (key: YamlPath, reason: string, hint?: string) => void
  readonly plainTextAt: (key: YamlPath) => string | undefined
}

/** Compiles a filter. Reports what a schema cannot check, and leaves those conditions out. */
export const parseFilter = (entry: FilterEntry, place: FilterPlace, key: YamlPath = []): Filter => {
  const conditions = Object.entries(entry).flatMap(([text, expected]): Condition[] =>
    isGroup(text, expected)
      ? [parseGroup(text, expected, place, [...key, text])]
      : parseValueCondition(text, expected, place, [...key, text]),
  )
  // The first mismatch is what an event names: a path says more than `any`.
  return conditions.toSorted((a, b) => Number(a.kind !== 'value') - Number(b.kind !== 'value'))
}

const parseGroup = (
  text: string,
  entries: readonly FilterEntry[],
  place: FilterPlace,
  key: YamlPath,
): GroupCondition => {
  const filters = entries.map((entry, index) => {
    if (Object.keys(entry).length === 0) place.report([...key, index], 'must not be empty')
    return parseFilter(entry, place, [...key, index])
  })
  return { kind: text === 'any' ? 'any' : 'none', text, filters }
}

const parseValueCondition = (
  text: string,
  expected: Expected,
  place: FilterPlace,
  key: YamlPath,
): ValueCondition[] => {
  const path = attempt(place, key, () => parseFilterPath(text))
  const doubts = path ? findPathDoubts(text, path) : []
  const isPlain = !isTests(expected)
  const given: Tests = isPlain ? { is: expected } : expected
  if (Object.keys(given).length === 0) place.report(key, 'must not be empty')
  const tests = operators.flatMap((operator) => {
    const values = given[operator]
    if (values === undefined) return []
    const testKey = isPlain ? key : [...key, operator]
    for (const [index, value] of [values].flat().entries()) {
      const valueKey = Array.isArray(values) ? [...testKey, index] : testKey
      const written = place.plainTextAt(valueKey)
      if (typeof value === 'number') checkNumber(value, operator, written, valueKey, place)
      else doubts.push(...findValueDoubts(value, { text, operator, isPlain, written }))
    }
    const test = attempt(place, testKey, () => compileTest(operator, [values].flat()))
    return test ? [test] : []
  })
  return path ? [{ kind: 'value', text, path, isList: path.includes(each), tests, doubts }] : []
}

/** By the schema, these names have lists of filters and all others do not. */
const isGroup = (text: string, _expected: FilterEntry[string]): _expected is FilterEntry[] =>
  text === 'any' || text === 'none'

const isTests = (expected: Expected): expected is Tests =>
  typeof expected === 'object' && !Array.isArray(expected)

/** A path of the payload, or `headers.<name>`. */
const parseFilterPath = (text: string): Path => {
  const path = parsePath(text)
  const [, name] = path
  // A field of the payload with this name is written ["headers"].
  if (!/^headers[.[]/.test(text)) return ['event', ...path]
  checkScopePath(path)
  return typeof name === 'string' ? ['headers', name.toLowerCase()] : path
}

/** A version, short hash or postcode would match another one. */
const checkNumber = (
  value: number,
  operator: Operator,
  written: string | undefined,
  key: YamlPath,
  { report }: FilterPlace,
): void => {
  if (operator === 'above' || operator === 'below') return
  if (written !== undefined && written !== String(value))
    report(
      key,
      `YAML reads ${written} as the number ${value}`,
      `write '${written}' in quotes, or ${value}`,
    )
}

const attempt = <Value>(
  { report }: FilterPlace,
  key: YamlPath,
  read: () => Value,
): Value | undefined => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    report(key, error.message, error.hint)
    return undefined
  }
}

/** The conditions on values in a filter, also those in `any` and `none`. */
export const valueConditions = (filter: Filter): ValueCondition[] =>
  filter.flatMap((condition) =>
    condition.kind === 'value' ? [condition] : condition.filters.flatMap(valueConditions),
  )

/** The expectation of a condition in words: `"a" or "b"`, `above 5 and below 9`. */
export const describeTests = ({ tests }: Pick<ValueCondition, 'tests'>): string =>
  tests.map(({ words }) => words).join(' and ')
