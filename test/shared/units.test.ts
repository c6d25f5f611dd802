import assert from 'node:assert/strict'
import { parseBytes, parseMilliseconds } from '../../shared/text.ts'

describe('a size', () => {
  for (const [text, bytes] of [
    ['1b', 1],
    ['512kb', 524_288],
    ['25mb', 26_214_400],
    ['2gb', 2_147_483_648],
    ['0b', 0],
  ] as const)
    it(`of ${text} is ${bytes} bytes`, () => assert.equal(parseBytes(text), bytes))

  for (const text of ['', '1', 'kb', '1.5mb', '-1kb', '1 kb', '1KB', '1tb', ' 1kb', '1kb\n'])
    it(`is no number as ${JSON.stringify(text)}`, () => assert.ok(Number.isNaN(parseBytes(text))))
})

describe('a duration', () => {
  for (const [text, ms] of [
    ['500ms', 500],
    ['30s', 30_000],
    ['10m', 600_000],
    ['2h', 7_200_000],
    ['30d', 2_592_000_000],
  ] as const)
    it(`of ${text} is ${ms} milliseconds`, () => assert.equal(parseMilliseconds(text), ms))

  for (const text of ['', '5', 's', '1.5s', '-1s', '1 s', '1S', '1w', '1m30s', '30s\n'])
    it(`is no number as ${JSON.stringify(text)}`, () =>
      assert.ok(Number.isNaN(parseMilliseconds(text))))
})
