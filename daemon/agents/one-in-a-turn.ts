import { workAtEndOfTurn } from '../end-of-turn.ts'
import { createFifo } from '../fifo.ts'

/**
 * Makes what lets one go on in each turn of the loop, in the order they came; at once if nobody has in this
 * one. The start of a program stops the daemon for milliseconds: of many that are ready together, each would
 * have to be waited for by whoever sends something.
 */
export const oneInATurn = (): (() => Promise<void>) => {
  const waiting = createFifo<() => void>()
  let isTaken = false
  const next = (): void => {
    const goOn = waiting.shift()
    isTaken = goOn !== undefined
    if (!goOn) return
    workAtEndOfTurn(next)
    goOn()
  }
  return async () => {
    if (isTaken) return new Promise((resolve) => waiting.add(resolve))
    isTaken = true
    workAtEndOfTurn(next)
  }
}
