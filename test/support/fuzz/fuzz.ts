import { randomBytes } from 'node:crypto'
import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as fc from 'fast-check'
import { edited, editsWith } from './edits.ts'

/*
 * Properties that are tried with inputs nobody thought of. A failure names the smallest input found and
 * its seed: FUZZ_SEED=<it> tries the same again. FUZZ_MINUTES=60 goes on for that long in all, each time
 * with new inputs. What fails becomes a file in test/security/corpus, or a test beside the stage.
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
    const details = await fc.check(property, {
      seed,
      ...(minutes > 0
        ? { numRuns: 2 ** 31 - 1, interruptAfterTimeLimit: shareMs }
        : { numRuns: runs }),
    })
    if (!details.failed) return
    const report = (fc.defaultReportMessage(details) ?? '').slice(0, 4000)
    throw new Error(`${report}\nFUZZ_SEED=${seed} tries the same again`, {
      cause: details.errorInstance,
    })
  })
}

const folder = fileURLToPath(new URL('../../../../test/security/corpus/', import.meta.url))

/** The files of one kind of the corpus. */
export const corpus = (kind: string): Buffer[] =>
  readdirSync(join(folder, kind))
    .sort()
    .map((name) => readFileSync(join(folder, kind, name)))

/** Bytes of the corpus as they are, changed, put together, or bytes of any kind. */
export const bytesLike = (kind: string, more: readonly Buffer[] = []): fc.Arbitrary<Buffer> => {
  const seeds = [...corpus(kind), ...more].map((bytes) => bytes.toString('latin1'))
  const words = [...new Set(seeds.flatMap((text) => text.match(/[\w.-]+|[^\w.\s-]+/g) ?? []))]
  const one = fc.constantFrom(...seeds)
  const changed = fc
    .tuple(one, editsWith(one, fc.constantFrom(...words)))
    .map(([text, edits]) => edited(text, edits))
  const any = fc
    .uint8Array({ maxLength: 300 })
    .map((bytes) => Buffer.from(bytes).toString('latin1'))
  return fc
    .oneof(
      { weight: 6, arbitrary: changed },
      { weight: 1, arbitrary: one },
      { weight: 1, arbitrary: any },
    )
    .map((text) => Buffer.from(text, 'latin1'))
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
