import type * as fc from 'fast-check'
import { type Drawn, keep, takeDrawn } from '../fuzz/inputs.ts'
import { createReached, isGuided } from '../fuzz/reached.ts'

// To ask what ran takes as long as a hundred small inputs: it is asked once for so many.
const together = 32

export type Led<Inputs> = {
  readonly property: fc.IRawProperty<Inputs, true>
  /** What was taken from pools for the smallest input that failed. */
  readonly failing: () => readonly Drawn[]
}

/** The same property; where what ran is counted, it keeps the inputs that reach what no other did. */
export const led = <Inputs>(property: fc.IRawProperty<Inputs>): Led<Inputs> => {
  let failing: readonly Drawn[] = []
  const look = isGuided ? createLook(property) : undefined
  return {
    failing: () => failing,
    property: {
      isAsync: () => true,
      generate: (random, runId) => property.generate(random, runId),
      shrink: (value) => property.shrink(value),
      runBeforeEach: async () => property.runBeforeEach(),
      runAfterEach: async () => property.runAfterEach(),
      run: async (inputs) => {
        // Inputs are made one by one, right before they are tried; a smaller one only where it changed.
        const drawn = takeDrawn()
        const failure = await property.run(inputs)
        if (failure === null) {
          // What is kept must not change while a smaller input is looked for.
          if (failing.length === 0) await look?.({ inputs, drawn })
        } else if (!('precondition' in failure)) {
          const same = failing.filter(({ pool }) => drawn.every((each) => each.pool !== pool))
          failing = [...same, ...drawn]
        }
        return failure
      },
    },
  }
}

type Tried<Inputs> = { readonly inputs: Inputs; readonly drawn: readonly Drawn[] }

/** Collects inputs; when some of them reached a new place, tries each of them again to see which. */
const createLook = <Inputs>(property: fc.IRawProperty<Inputs>) => {
  const reached = createReached()
  reached.skip()
  let waiting: Tried<Inputs>[] = []
  return async (one: Tried<Inputs>): Promise<void> => {
    waiting.push(one)
    if (waiting.length < together) return
    const all = waiting
    waiting = []
    if (!reached.hasNew()) return
    for (const { inputs, drawn } of all) {
      await property.run(inputs)
      if (reached.remember()) keep(drawn)
    }
  }
}
