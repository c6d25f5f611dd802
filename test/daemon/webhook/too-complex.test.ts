import assert from 'node:assert/strict'
import { findJsonExcess } from '../../../daemon/util/exact-json.ts'

const padding = ' '.repeat(1_100_000)
const large = (json: string): string => json + padding
const list = (count: number, item: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => item(index)).join(',')
const names = (count: number) => `{${list(count, (index) => `"${index}":1`)}}`

describe('what is too much of JSON', () => {
  const rows: [string, string, RegExp | undefined][] = [
    ['1,000 levels', large('['.repeat(1000) + ']'.repeat(1000)), undefined],
    ['1,001 levels', large('['.repeat(1001) + ']'.repeat(1001)), /1,000 levels/],
    ['levels of objects', large('{"a":'.repeat(1001)), /1,000 levels/],
    ['levels that never close', '['.repeat(25_000_000), /1,000 levels/],
    ['400,000 objects beside each other', large(`[${'{},'.repeat(400_000)}0]`), undefined],
    [
      '600,000 objects beside each other',
      large(`[${'{},'.repeat(600_000)}0]`),
      /objects and lists/,
    ],
    ['brackets in a string', large(JSON.stringify('['.repeat(2000))), undefined],
    ['brackets after an escaped quote', large(JSON.stringify(`"${'['.repeat(2000)}`)), undefined],
    ['brackets after an escaped backslash', large(`["\\\\",${'['.repeat(1001)}`), /1,000 levels/],
    ['a string that never ends', large(`"${'['.repeat(2000)}`), undefined],
    ['a string of quotes and backslashes', large(JSON.stringify('\\"'.repeat(200_000))), undefined],
    ['any short text', '['.repeat(5000), undefined],
    ['250,000 members', large(names(250_000)), undefined],
    ['250,001 members', large(names(250_001)), /250,000 members/],
    ['1,000,000 items', `[${list(1_000_000, () => '1')}]`, undefined],
    ['1,000,001 items', `[${list(1_000_001, () => '1')}]`, /1,000,000 values/],
    [
      'colons, commas and digits in a string',
      JSON.stringify(':,1234567890123456'.repeat(100_000)),
      undefined,
    ],
    [
      '100,000 numbers of 20 digits',
      large(`[${list(100_000, () => '18446744073709551615')}]`),
      undefined,
    ],
    [
      '100,001 numbers of 20 digits',
      large(`[${list(100_001, () => '18446744073709551615')}]`),
      /digits/,
    ],
    ['one number of 2,000,001 digits', '1'.repeat(2_000_001), /digits/],
    ['a million numbers of 15 digits', `[${list(1_000_000, () => '123456789012345')}]`, undefined],
  ]
  for (const [name, json, expected] of rows)
    it(`is ${expected ? '' : 'not '}${name}`, () => {
      const excess = findJsonExcess(json)
      if (expected) assert.match(excess ?? '', expected)
      else assert.equal(excess, undefined)
    })
})
