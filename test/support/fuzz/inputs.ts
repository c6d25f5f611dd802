import * as fc from 'fast-check'
import { edited, editsWith } from './edits.ts'
import { isGuided } from './reached.ts'

/** Texts that inputs are made of: those of the corpus, and those that led somewhere new. */
export type Pool = {
  /** The folder of the corpus where its texts come from, if there is one. */
  readonly kind: string | undefined
  readonly seeds: readonly string[]
  readonly kept: string[]
}

/** A text that was given to a property, and where it came from. */
export type Drawn = { readonly pool: Pool; readonly text: string }

let drawn: Drawn[] = []
const pools: Pool[] = []

/** What was made out of pools since this was asked the last time. */
export const takeDrawn = (): Drawn[] => {
  const taken = drawn
  drawn = []
  return taken
}

/** Remembers inputs that led somewhere new: others are made of them from now on. */
export const keep = (inputs: readonly Drawn[]): void => {
  for (const { pool, text } of inputs) if (!pool.kept.includes(text)) pool.kept.push(text)
}

/** Begins anew, so that what is kept for one property changes nothing for the next. */
export const forgetKept = (): void => {
  drawn = []
  for (const { kept } of pools) kept.length = 0
}

/** True when this makes something out of a pool. */
export const isDrawn = (make: () => unknown): boolean => {
  make()
  return takeDrawn().length > 0
}

/** One of the seeds, or as often one of those that were kept, rather a late one. */
const anyOf = ({ seeds, kept }: Pool): fc.Arbitrary<string> =>
  fc.noBias(fc.nat()).map((number) => {
    const [one, other] = [number >>> 1, number >>> 11]
    if ((number % 2 === 0 || seeds.length === 0) && kept.length > 0)
      return kept[Math.max(one % kept.length, other % kept.length)] ?? ''
    return seeds[one % seeds.length] ?? ''
  })

/** Texts of a pool as they are or edited, and now and then fresh ones. */
export const textsLike = (
  kind: string | undefined,
  seeds: readonly string[],
  words: readonly string[],
  fresh: fc.Arbitrary<string>,
): fc.Arbitrary<string> => {
  const pool: Pool = { kind, seeds, kept: [] }
  pools.push(pool)
  const one = anyOf(pool)
  const edits = editsWith(one, words.length > 0 ? fc.constantFrom(...words) : fresh)
  const changed = fc.tuple(one, edits).map(([text, list]) => edited(text, list))
  // Without seeds, fresh texts are all there is until some of them are kept.
  const like =
    seeds.length > 0
      ? fc.oneof(
          { weight: 6, arbitrary: changed },
          { weight: 1, arbitrary: one },
          { weight: 1, arbitrary: fresh },
        )
      : isGuided
        ? fc
            .tuple(fc.noBias(fc.nat()), fresh, changed)
            .map(([number, first, other]) =>
              pool.kept.length === 0 || number % 3 === 0 ? first : other,
            )
        : fresh
  return like.map((text) => {
    drawn.push({ pool, text })
    return text
  })
}
