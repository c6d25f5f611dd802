import { randomBytes } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import * as fc from 'fast-check'

/*
 * Properties that are tried with inputs nobody thought of. A failure names the smallest input found and
 * its seed: FUZZ_SEED=<it> tries the same again. FUZZ_MINUTES=60 goes on for that long in all, each time
 * with new inputs. What is found becomes a file in test/security/corpus, or a test beside the stage.
 */

const seed = Number(process.env['FUZZ_SEED'] ?? randomBytes(4).readInt32BE()) | 0
const minutes = Number(process.env['FUZZ_MINUTES'] ?? 0)
let properties = 0

/** A test that this property holds for so many inputs, or for its share of FUZZ_MINUTES. */
export const holds = <Inputs>(
  what: string,
  runs: number,
  property: fc.IRawProperty<Inputs>,
): void => {
  properties += 1
  it(`${what} (FUZZ_SEED=${seed})`, async function () {
    const shareMs = (minutes * 60_000) / properties
    this.timeout(shareMs + 120_000)
    await fc.assert(property, {
      seed,
      ...(minutes > 0
        ? { numRuns: 2 ** 31 - 1, interruptAfterTimeLimit: shareMs }
        : { numRuns: runs }),
    })
  })
}

const folder = fileURLToPath(new URL('../../../test/security/corpus/', import.meta.url))

/** The files of one kind of the corpus. */
export const corpus = (kind: string): Buffer[] =>
  readdirSync(`${folder}${kind}`)
    .sort()
    .map((name) => readFileSync(`${folder}${kind}/${name}`))

/** Bytes of the corpus as they are, changed, put together, or bytes of any kind. */
export const bytesLike = (kind: string, more: readonly Buffer[] = []): fc.Arbitrary<Buffer> => {
  const seeds = [...corpus(kind), ...more]
  const one = fc.constantFrom(...seeds)
  const changed = fc
    .tuple(one, fc.array(fc.tuple(changes, fc.nat(), fc.nat(), one), { maxLength: 8 }))
    .map(([start, list]) =>
      list.reduce(
        (bytes, [change, at, size, other]) => apply(bytes, change, at, size, other),
        start,
      ),
    )
  return fc.oneof(
    { weight: 6, arbitrary: changed },
    { weight: 1, arbitrary: one },
    {
      weight: 1,
      arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
    },
  )
}

const changes = fc.constantFrom('flip', 'set', 'cut', 'double', 'insert', 'splice', 'end')

const apply = (bytes: Buffer, change: string, at: number, size: number, other: Buffer): Buffer => {
  const from = bytes.length === 0 ? 0 : at % (bytes.length + 1)
  const to = Math.min(from + (size % 16) + 1, bytes.length)
  const [before, middle, after] = [
    bytes.subarray(0, from),
    bytes.subarray(from, to),
    bytes.subarray(to),
  ]
  switch (change) {
    case 'flip':
      return Buffer.concat([
        before,
        Buffer.from(middle.map((byte, place) => (place === 0 ? byte ^ (1 << (size % 8)) : byte))),
        after,
      ])
    case 'set':
      return Buffer.concat([before, Buffer.alloc(middle.length, size % 256), after])
    case 'cut':
      return Buffer.concat([before, after])
    case 'double':
      return Buffer.concat([before, middle, middle, after])
    case 'insert':
      return Buffer.concat([before, Buffer.from([size % 256]), middle, after])
    case 'splice':
      return Buffer.concat([before, other.subarray(size % (other.length + 1))]).subarray(0, 65_536)
    default:
      return Buffer.from(before)
  }
}

/** Text put together of pieces that mean something to who reads it, and of any characters. */
export const textOf = (pieces: readonly string[]): fc.Arbitrary<string> =>
  fc
    .array(
      fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(...pieces) },
        { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
        { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
      ),
      { maxLength: 14 },
    )
    .map((parts) => parts.join(''))
