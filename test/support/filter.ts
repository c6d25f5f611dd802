import assert from 'node:assert/strict'
import { compileTest } from '../../shared/filter/tests.ts'
import { type Filter, filterSchema, parseFilter } from '../../shared/filter/conditions.ts'
import type { ValueCondition } from '../../shared/filter/conditions.ts'
import { readYaml } from '../../shared/config/yaml.ts'

/** The filter of `filter:` as it is written in webhooks.yaml. Throws what the check reports. */
export const filterOf = (text: string): Filter => {
  const file = readYaml('webhooks.yaml', text)
  assert.deepEqual(file.problems, [])
  return parseFilter(filterSchema.parse(file.value), {
    report: (key, reason, hint) => {
      throw new Error(`${key.join('.')}: ${reason}${hint === undefined ? '' : ` (${hint})`}`)
    },
    plainTextAt: file.plainTextAt,
  })
}

/** The condition that the value at this path of the payload is one of these. */
export const isOneOf = (names: readonly string[], expected: readonly string[]): ValueCondition => ({
  kind: 'value',
  text: names.join('.'),
  path: ['event', ...names],
  isList: false,
  tests: [compileTest('is', expected)],
  doubts: [],
})
