import { createRequire } from 'node:module'
import type * as re2js from 're2js'
import { DoorwardError } from '../errors.ts'

/*
 * Tests of one value. Patterns are compiled by RE2, whose time grows with the length of the value
 * alone: the value comes from outside.
 */

export const operators = [
  'is',
  'not',
  'in',
  'not_in',
  'glob',
  'regex',
  'contains',
  'exists',
  'above',
  'below',
] as const
export type Operator = (typeof operators)[number]

export type Test = {
  readonly operator: Operator
  readonly expected: readonly string[]
  /** The expectation, for people: `"a" or "b"`, `above 5`. */
  readonly words: string
  /** A negated condition matches when no value is accepted. */
  readonly isNegated: boolean
  /** Whether a value, undefined for a missing one, is accepted. */
  readonly accepts: (value: unknown) => boolean
}

/** Compiles the test of an operator. Throws `config-invalid` for a pattern that cannot be used. */
export const compileTest = (
  operator: Operator,
  given: readonly (string | number | boolean)[],
): Test => {
  const expected = given.map(String)
  const list = expected.map((text) => JSON.stringify(text)).join(' or ')
  const test = (words: string, accepts: Test['accepts'], isNegated = false): Test => ({
    operator,
    expected,
    words,
    isNegated,
    accepts,
  })
  const number = Number(given[0])
  switch (operator) {
    case 'is':
    case 'in':
      return test(list, equals(expected))
    case 'not':
    case 'not_in':
      return test(`not ${list}`, equals(expected), true)
    case 'glob':
      return test(`glob ${list}`, matchesAny(expected.map(compileGlob)))
    case 'regex':
      return test(`regex ${list}`, matchesAny(expected.map(compileRegex)))
    case 'contains':
      return test(`to contain ${list}`, contains(expected))
    case 'exists':
      return given[0] === true ? test('a value', isPresent) : test('no value', isPresent, true)
    case 'above':
      return test(`above ${number}`, (value) => (toNumber(value) ?? Number.NaN) > number)
    case 'below':
      return test(`below ${number}`, (value) => (toNumber(value) ?? Number.NaN) < number)
  }
}

/** Text, numbers and booleans are compared as text, without a last line end; null, objects and lists equal nothing. */
const equals = (expected: readonly string[]): ((value: unknown) => boolean) => {
  const texts = expected.map(withoutLastEnd)
  return (value) => isScalar(value) && texts.includes(withoutLastEnd(String(value)))
}

const contains = (expected: readonly string[]): ((value: unknown) => boolean) => {
  const texts = expected.map(toPlainEnds)
  const isOne = equals(expected)
  return (value) => {
    if (Array.isArray(value)) return value.some(isOne)
    if (typeof value !== 'string') return false
    const plain = toPlainEnds(value)
    return texts.some((text) => plain.includes(text))
  }
}

const matchesAny =
  (patterns: readonly ((text: string) => boolean)[]) =>
  (value: unknown): boolean => {
    if (!isScalar(value)) return false
    const text = toPlainEnds(String(value))
    return patterns.some((matches) => matches(text))
  }

/** A browser ends the lines of a form with `\r\n`, a program with `\n`. */
const toPlainEnds = (text: string): string =>
  text.includes('\r\n') ? text.replaceAll('\r\n', '\n') : text

/** A block of YAML, and a comment that ends with a line end, are the text before it. */
const withoutLastEnd = (text: string): string => toPlainEnds(text).replace(/\n$/, '')

const isScalar = (value: unknown): value is string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'

const isPresent = (value: unknown): boolean => value !== undefined && value !== null

/** Also a number that the sender writes as text, and one too large for JSON to be exact. */
const toNumber = (value: unknown): number | undefined => {
  if (typeof value === 'number') return value
  return typeof value === 'string' && /^-?\d{1,300}(\.\d{1,300})?$/.test(value)
    ? Number(value)
    : undefined
}

type Re2 = typeof re2js

let re2: Re2 | undefined

/** Loaded with the first pattern, as most configurations have none. */
const loadRe2 = (): Re2 => (re2 ??= createRequire(import.meta.url)('re2js') as Re2)

/** The worst pattern of this size takes half a second for the longest value, a usual one a millisecond. */
const maxPatternLength = 500
const maxProgramSize = 300
/** Characters of a value that a pattern reads. */
const maxTextLength = 65_536

const compileRegex = (pattern: string): ((text: string) => boolean) => {
  const compiled = compile(pattern, pattern, 0)
  return (text) => compiled.test(text.slice(0, maxTextLength))
}

const compileGlob = (glob: string): ((text: string) => boolean) => {
  const { RE2JS } = loadRe2()
  const source = glob.replaceAll(/\*\*|\*|\?|[^*?]+/g, (part) =>
    part === '**' ? '.*' : part === '*' ? '[^/]*' : part === '?' ? '[^/]' : RE2JS.quote(part),
  )
  const compiled = compile(source, glob, RE2JS.DOTALL)
  return (text) => text.length <= maxTextLength && compiled.testExact(text)
}

const compile = (source: string, written: string, flags: number): InstanceType<Re2['RE2JS']> => {
  const { RE2JS, RE2JSSyntaxException } = loadRe2()
  const invalid = (reason: string, hint?: string) =>
    new DoorwardError('config-invalid', `${JSON.stringify(shorten(written))} ${reason}`, {
      ...(hint !== undefined && { hint }),
    })
  if (written.length > maxPatternLength)
    throw invalid(`is longer than ${maxPatternLength} characters`)
  try {
    const compiled = RE2JS.compile(source, flags)
    if (compiled.programSize() > maxProgramSize)
      throw invalid('is too large', 'repeat fewer times, or write several in a list')
    return compiled
  } catch (error) {
    if (!(error instanceof RE2JSSyntaxException)) throw error
    const { error: reason, input } = error
    throw invalid(
      `is not a regular expression of RE2: ${reason}${input === null ? '' : `: ${input}`}`,
      hintFor(written, reason),
    )
  }
}

const shorten = (text: string): string => (text.length > 60 ? `${text.slice(0, 60)}…` : text)

const hintFor = (pattern: string, reason: string): string | undefined => {
  if (/\(\?<?[=!]/.test(pattern))
    return 'RE2 has no lookahead and no lookbehind: use several conditions, or none'
  if (/\\[1-9]|\\k</.test(pattern)) return 'RE2 has no backreferences'
  return reason === 'invalid repeat count'
    ? 'repetitions, multiplied where one is in another, go up to 1000'
    : undefined
}
