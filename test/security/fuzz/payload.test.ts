import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { textOfValue, valueAt } from '../../../daemon/util/payload-path.ts'
import { expandPrompt } from '../../../daemon/webhook/prompt.ts'
import { holds as fits } from '../../../daemon/webhook/rules/choose.ts'
import { loadMultipart } from '../../../daemon/webhook/forms.ts'
import { findJsonExcess } from '../../../daemon/util/exact-json.ts'
import type { Payload } from '../../../daemon/webhook/body.ts'
import { parse } from '../../../daemon/webhook/read-delivery.ts'
import { verify } from '../../../daemon/webhook/signatures/verify.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { parseTemplate } from '../../../shared/templates.ts'
import { filterOf, isOneOf } from '../../support/filter.ts'
import { scopeOf } from '../../support/scope.ts'
import { bytesLike, corpus, holds, textOf } from '../../support/fuzz/fuzz.ts'

const contentTypes = [
  undefined,
  '',
  'application/json',
  'APPLICATION/JSON ; charset=utf-8',
  'application/vnd.x+json',
  'application/x-www-form-urlencoded',
  'text/plain',
  'multipart/form-data',
  'multipart/form-data; boundary=x',
  'text/json',
  '+json',
]

const parsed = (
  bytes: Buffer,
  type: string | undefined,
  encoding: string | undefined,
  jsonAsText: boolean,
): { readonly payload: Payload } | undefined => {
  try {
    const body = verify(bytes, {}, 'none', 0)
    const headers = { 'content-type': type, 'content-encoding': encoding }
    return { payload: parse(body, headers, jsonAsText ? { jsonAsText } : {}) }
  } catch (error) {
    assert.ok(error instanceof DoorwardError, String(error))
    assert.ok(['payload-not-json', 'media-type-unsupported'].includes(error.code), error.code)
    return undefined
  }
}

const inherited = (): string[] =>
  [Object.prototype, Array.prototype, Function.prototype].flatMap((prototype) =>
    Reflect.ownKeys(prototype).map(String),
  )
const before = inherited()

/** The same values, but for integers of which a number would be another one. */
const assertSame = (exact: unknown, rounded: unknown): void => {
  if (typeof exact === 'string' && typeof rounded === 'number') {
    assert.ok(!Number.isSafeInteger(rounded))
    assert.equal(Number(exact), rounded)
  } else if (typeof exact === 'object' && exact !== null) {
    assert.ok(typeof rounded === 'object' && rounded !== null)
    assert.deepEqual(Object.keys(exact), Object.keys(rounded))
    const values = Object.values(rounded) as readonly unknown[]
    Object.values(exact).forEach((value, at) => assertSame(value, values[at]))
  } else assert.deepEqual(exact, rounded)
}

describe('any integer', () => {
  const item = fc.oneof(
    fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }),
    fc.string(),
    fc.double(),
  )
  const exact = (literal: string): unknown => {
    const value: unknown = JSON.parse(literal)
    return /^-?\d+$/.test(literal) && !Number.isSafeInteger(value) ? literal : value
  }
  holds(
    'is itself, as a number or as text, wherever it stands',
    3000,
    fc.property(fc.array(fc.tuple(fc.string(), item)), (items) => {
      const literals = items.map(([, value]) =>
        typeof value === 'bigint' ? String(value) : JSON.stringify(value),
      )
      const pairs = items.map(([name], at) => `{${JSON.stringify(name)}:${literals[at] ?? ''}}`)
      const found = parsed(
        Buffer.from(`[${pairs.join(', ')}]`),
        'application/json',
        undefined,
        false,
      )
      assert.deepEqual(
        found?.payload,
        items.map(([name], at) => Object.fromEntries([[name, exact(literals[at] ?? '')]])),
      )
    }),
  )
})

describe('any body', () => {
  beforeEach(loadMultipart)

  holds(
    'is a payload or an error of ours, and gives nothing to other objects',
    3000,
    fc.property(
      bytesLike('payloads'),
      fc.constantFrom(...contentTypes),
      fc.constantFrom(undefined, 'identity', 'gzip', 'br', ' IDENTITY '),
      fc.boolean(),
      (bytes, type, encoding, jsonAsText) => {
        const found = parsed(bytes, type, encoding, jsonAsText)
        if (!found) return
        if (type !== undefined && /json/i.test(type))
          assertSame(found.payload, JSON.parse(new TextDecoder().decode(bytes)))
        assert.equal(typeof textOfValue(found.payload), 'string')
        for (const path of [['__proto__'], ['constructor', 'prototype'], ['a', '__proto__', '0']]) {
          const value = valueAt(found.payload, path)
          assert.ok(value !== Object.prototype && typeof value !== 'function')
        }
        assert.deepEqual(inherited(), before)
      },
    ),
  )

  const filler = 'x'.repeat(1024 * 1024)
  holds(
    'of more than 1 MB is too complex exactly when what is no text in it is too deep',
    200,
    fc.property(
      bytesLike('payloads').map((bytes) => bytes.toString('latin1')),
      fc.constantFrom(0, 1, 600, 998, 999, 1000),
      (text, levels) => {
        const json = `["${filler}",${'['.repeat(levels)}${text}${']'.repeat(levels)}]`
        const excess = findJsonExcess(json)
        if (isJson(text)) assert.equal(excess !== undefined, levels + depthOf(text) > 999)
      },
    ),
  )

  holds(
    'is compared by a filter as its words say, at any depth',
    2000,
    fc.property(
      fc.array(fc.string({ minLength: 1, maxLength: 6 }).filter(isName), { maxLength: 5 }),
      fc.jsonValue(),
      fc.array(fc.string({ maxLength: 5 }), { maxLength: 4 }),
      (path, value, others) => {
        // As it comes out of JSON: `__proto__` is a name like any other there.
        const payload = JSON.parse(
          path.reduceRight(
            (inner, name) => `{${JSON.stringify(name)}:${inner}}`,
            JSON.stringify(value),
          ),
        ) as unknown
        const isScalar = ['string', 'number', 'boolean'].includes(typeof value)
        const seen = isScalar ? String(JSON.parse(JSON.stringify(value))) : 'null'
        assert.equal(fits(scopeOf(payload), isOneOf(path, [...others, seen])), isScalar)
        assert.equal(
          fits(scopeOf(payload), isOneOf(path, others)),
          isScalar && others.includes(seen),
        )
        // Its own one, which a value may have, is a value like any other.
        const hasOwn =
          typeof value === 'object' && value !== null && Object.hasOwn(value, 'toString')
        if (!hasOwn)
          assert.equal(fits(scopeOf(payload), isOneOf([...path, 'toString'], others)), false)
        if (typeof value === 'string')
          assert.equal(fits(scopeOf(payload), isOneOf([...path, '0'], seen.split(''))), false)
      },
    ),
  )

  const filters = [
    'a: { glob: "*x?**" }',
    'a: { regex: "^[a-z]+(x|y)*$" }',
    'a.b: { contains: [x, 1] }',
    "'a[*]': { is: x }",
    "'a[*].b[*]': { above: 0, below: 5 }",
    'a: { exists: true }',
    'a.constructor: { exists: true }',
    'a: { not: x, in: [y, z] }',
  ].map(filterOf)
  holds(
    'passes a filter or its opposite, and never breaks it',
    2000,
    fc.property(fc.constantFrom(...filters), fc.jsonValue(), (filter, value) => {
      const scope = scopeOf(JSON.parse(JSON.stringify({ a: value })))
      const passes = fits(scope, { kind: 'any', text: 'any', filters: [filter] })
      assert.equal(fits(scope, { kind: 'none', text: 'none', filters: [filter] }), !passes)
    }),
  )

  holds(
    'is put into a prompt once, and never expanded again',
    2000,
    fc.property(
      textOf(['{{event}}', '{{event.a}}', '{{', '}}', 'event.b', '$&', "$'", '\\', ...attacks()]),
      textOf(['{{event.a}}', '{{event.b}}', '$1', ...attacks()]),
      (a, b) => {
        const template = parseTemplate('1 {{event.a}} 2 {{event.b}}{{event.a}} {{ event.c }}.')
        const style = { eventText: 'plain', maxValueLength: undefined } as const
        assert.equal(expandPrompt(template, scopeOf({ a, b }), style, ''), `1 ${a} 2 ${b}${a} .`)
      },
    ),
  )
})

function isName(text: string): boolean {
  return !text.includes('.')
}

function attacks(): string[] {
  return corpus('attacks').map((bytes) => bytes.toString())
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** How many lists and objects stand in each other at most. */
function depthOf(json: string): number {
  let depth = 0
  let most = 0
  for (const bracket of json.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').match(/[[\]{}]/g) ?? []) {
    depth += '[{'.includes(bracket) ? 1 : -1
    most = Math.max(most, depth)
  }
  return most
}
