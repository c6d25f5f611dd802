import assert from 'node:assert/strict'
import { exceedsJsonLimits } from '../../../daemon/util/exact-json.ts'

const padding = ' '.repeat(1_100_000)
const large = (json: string): string => json + padding

describe('isTooComplex', () => {
  const rows: [string, string, boolean][] = [
    ['1,000 levels', large('['.repeat(1000) + ']'.repeat(1000)), false],
    ['1,001 levels', large('['.repeat(1001) + ']'.repeat(1001)), true],
    ['levels of objects', large('{"a":'.repeat(1001)), true],
    ['levels that never close', '['.repeat(25_000_000), true],
    ['400,000 objects beside each other', large(`[${'{},'.repeat(400_000)}0]`), false],
    ['600,000 objects beside each other', large(`[${'{},'.repeat(600_000)}0]`), true],
    ['brackets in a string', large(JSON.stringify('['.repeat(2000))), false],
    ['brackets after an escaped quote', large(JSON.stringify(`"${'['.repeat(2000)}`)), false],
    ['brackets after an escaped backslash', large(`["\\\\",${'['.repeat(1001)}`), true],
    ['a string that never ends', large(`"${'['.repeat(2000)}`), false],
    ['a string of quotes and backslashes', large(JSON.stringify('\\"'.repeat(200_000))), false],
    ['any short text', '['.repeat(5000), false],
  ]
  for (const [name, json, expected] of rows)
    it(`is ${expected} for ${name}`, () => {
      assert.equal(exceedsJsonLimits(json), expected)
    })
})
