import { workAtEndOfTurn } from '../http/turn-batching.ts'
import { createFifo } from '../util/fifo.ts'

/**
 * Makes what lets one go on at the end of each turn of the loop, in the order they came. The start of a program
 * stops the daemon for milliseconds: of many that are ready together, each would have to be waited for by
 * whoever sends something, and the answers of a turn go out before any.
 */
export const oneInATurn = (): (() => Promise<void>) => {
  const waiting = createFifo<() => void>()
  const next = (): void => {
    const goOn = waiting.shift()
    if (waiting.size() > 0) workAtEndOfTurn(next)
    goOn?.()
  }
  return async () =>
    new Promise((resolve) => {
      waiting.add(resolve)
      if (waiting.size() === 1) workAtEndOfTurn(next)
    })
}
