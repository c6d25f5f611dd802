import { median } from '../quantile.ts'
import { type Goal, goals, goalText, holds } from './goals.ts'
import { type Column, columns, type Sample } from './sample.ts'

/** One line of the table: medians over the rounds. */
export type Row = {
  readonly row: string
  readonly measure: string
  readonly values: Readonly<Partial<Record<Column, number>>>
  /** Doorward's figure as a multiple of the bare server's, the median of what it was in each round. */
  readonly timesBare?: number
  readonly goal?: string
  readonly holds?: boolean
}

/** The figures of all rounds as lines, in the order in which they were first taken. */
export const rowsOf = (samples: readonly Sample[]): Row[] => {
  const keys = new Map(samples.map((one) => [`${one.row}\n${one.measure}`, one]))
  return [...keys.values()].map(({ row, measure }) => {
    const of = samples.filter((one) => one.row === row && one.measure === measure)
    const values: Partial<Record<Column, number>> = {}
    for (const column of columns) {
      const all = of.filter((one) => one.column === column).map(({ value }) => value)
      if (all.length > 0) values[column] = median(all)
    }
    const goal = goals.find((one) => one.row === row && one.measure === measure)
    const times = compared(of, (mine, bare) => mine / bare)
    return {
      row,
      measure,
      values,
      ...(times !== undefined && values.bare !== 0 && { timesBare: times }),
      ...(goal && judged(goal, of, values.doorward)),
    }
  })
}

const judged = (goal: Goal, of: readonly Sample[], mine = 0): Pick<Row, 'goal' | 'holds'> => {
  const value =
    goal.how === 'is'
      ? mine
      : compared(of, (a, bare) => (goal.how === 'times' ? a / bare : a - bare))
  // Without anything to compare with there is nothing to say.
  if (value === undefined) return { goal: goalText(goal) }
  return { goal: goalText(goal), holds: holds(goal, value) }
}

/** The median over the rounds of one figure beside the other of the same round. */
const compared = (
  of: readonly Sample[],
  compare: (doorward: number, bare: number) => number,
): number | undefined => {
  const all = of.flatMap(({ column, round, value }) => {
    const bare = of.find((one) => one.column === 'bare' && one.round === round)
    return column === 'doorward' && bare ? [compare(value, bare.value)] : []
  })
  return all.length > 0 ? median(all) : undefined
}
