import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as fc from 'fast-check'
import { type Drawn, forgetKept, isDrawn, textsLike } from './inputs.ts'
import { led } from '../desktop/led.ts'
import { isGuided } from './reached.ts'

/*
 * Properties that are tried with inputs nobody thought of. A failure names the smallest input found and
 * its seed: FUZZ_SEED=<it> tries the same again. FUZZ_MINUTES=60 goes on for that long in all, each time
 * with new inputs: half of it as always, half in `guided.test.ts`, where FUZZ_GUIDED=1 makes inputs of
 * those that reached a new place. What fails becomes a file in test/security/corpus by itself, or by
 * hand a test beside the stage.
 */

const seed = Number(process.env['FUZZ_SEED'] ?? randomBytes(4).readInt32BE()) | 0
const minutes = Number(process.env['FUZZ_MINUTES'] ?? 0) / (isGuided ? 1 : 2)
let properties = 0

/**
 * A test that this property holds for so many inputs (a quarter of them where they are guided, which
 * takes longer), or for its share of FUZZ_MINUTES.
 */
export const holds = <Inputs>(
  what: string,
  runs: number,
  property: fc.IRawProperty<Inputs>,
): void => {
  // What is not made of texts that could be kept is tried without guidance alone.
  if (isGuided && !isDrawn(() => fc.sample(property, { numRuns: 20, seed }))) return
  properties += 1
  it(`${what} (FUZZ_SEED=${seed})`, async function () {
    const shareMs = (minutes * 60_000) / properties
    this.timeout(shareMs + 120_000)
    forgetKept()
    const { property: watched, failing } = led(property)
    const details = await fc.check(watched, {
      seed,
      ...(minutes > 0
        ? { numRuns: 2 ** 31 - 1, interruptAfterTimeLimit: shareMs }
        : { numRuns: isGuided ? Math.ceil(runs / 4) : runs }),
    })
    if (details.failed) throw new Error(told(details, failing()), { cause: details.errorInstance })
  })
}

const told = <Inputs>(details: fc.RunDetails<Inputs>, failing: readonly Drawn[]): string => {
  const report = fc.defaultReportMessage(details) ?? ''
  const again = `${isGuided ? 'FUZZ_GUIDED=1 ' : ''}FUZZ_SEED=${seed}`
  const files = failing.flatMap(({ pool: { kind }, text }) =>
    kind === undefined ? [] : [writeFound(kind, text)],
  )
  return [
    report.slice(0, 4000),
    `${again} tries the same again`,
    ...failing.map(({ text }) => `made of ${JSON.stringify(text.slice(0, 500))}`),
    ...files.map((file) => `written to ${file}`),
  ].join('\n')
}

const folder =
  process.env['FUZZ_CORPUS'] ??
  fileURLToPath(new URL('../../../../test/security/corpus/', import.meta.url))

const writeFound = (kind: string, text: string): string => {
  const bytes = Buffer.from(text, 'latin1')
  const name = createHash('sha256').update(bytes).digest('hex').slice(0, 12)
  const file = join(folder, kind, `found-${name}`)
  mkdirSync(join(folder, kind), { recursive: true })
  writeFileSync(file, bytes)
  return file
}

/** The files of one kind of the corpus. */
export const corpus = (kind: string): Buffer[] =>
  readdirSync(join(folder, kind))
    .sort()
    .map((name) => readFileSync(join(folder, kind, name)))

/** Bytes of the corpus as they are, changed, put together, or bytes of any kind. */
export const bytesLike = (kind: string, more: readonly Buffer[] = []): fc.Arbitrary<Buffer> => {
  const seeds = [...corpus(kind), ...more].map((bytes) => bytes.toString('latin1'))
  const words = [...new Set(seeds.flatMap((text) => text.match(/[\w.-]+|[^\w.\s-]+/g) ?? []))]
  const any = fc
    .uint8Array({ maxLength: 300 })
    .map((bytes) => Buffer.from(bytes).toString('latin1'))
  return textsLike(kind, seeds, words, any).map((text) => Buffer.from(text, 'latin1'))
}

/** Text put together of pieces that mean something to who reads it, and of any characters. */
export const textOf = (pieces: readonly string[]): fc.Arbitrary<string> => {
  const fresh = fc
    .array(
      fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(...pieces) },
        { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 8 }) },
        { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
      ),
      { maxLength: 14 },
    )
    .map((parts) => parts.join(''))
  return textsLike(undefined, [], pieces, fresh)
}
