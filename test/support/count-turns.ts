/** Counts the turns of the loop from now on, until it is told to end. */
export const countTurns = () => {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  return {
    now: () => turns,
    end: () => {
      isOver = true
    },
  }
}
