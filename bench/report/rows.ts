import { median } from '../quantile.ts'
import { type Goal, goals, goalText, holds } from './goals.ts'
import { type Column, columns, type Sample } from './sample.ts'

/** One line of the table: medians over the rounds. */
export type Row = {
  readonly row: string
  readonly measure: string
  readonly values: Readonly<Partial<Record<Column, number>>>
  /** Doorward's figure as a multiple of another's in the same round: the median over the rounds. */
  readonly times: Readonly<Partial<Record<Column, number>>>
  readonly goal?: string
  readonly holds?: boolean
}

/** Combines the figures of all rounds to lines, in the order in which they were first measured. */
export const rowsOf = (samples: readonly Sample[]): Row[] => {
  const keys = new Map(samples.map((sample) => [`${sample.row}\n${sample.measure}`, sample]))
  return [...keys.values()].map(({ row, measure }) => {
    const same = samples.filter((sample) => sample.row === row && sample.measure === measure)
    const values: Partial<Record<Column, number>> = {}
    for (const column of columns) {
      const all = same.filter((sample) => sample.column === column).map(({ value }) => value)
      if (all.length > 0) values[column] = median(all)
    }
    return {
      row,
      measure,
      values,
      times: timesOf(same),
      ...judge(
        goals.filter((goal) => goal.row === row && goal.measure === measure),
        same,
        values.doorward,
      ),
    }
  })
}

/** A goal whose reference was not measured says nothing. */
const judge = (
  ofRow: readonly Goal[],
  same: readonly Sample[],
  doorward = 0,
): Pick<Row, 'goal' | 'holds'> => {
  if (ofRow.length === 0) return {}
  const results = ofRow.flatMap((goal) => {
    const { reference } = goal
    const value = reference === 'nothing' ? doorward : compareWith(reference, same)
    return value === undefined ? [] : [holds(goal, value)]
  })
  const goal = ofRow.map(goalText).join(', ')
  return results.length === 0 ? { goal } : { goal, holds: !results.includes(false) }
}

const timesOf = (same: readonly Sample[]): Row['times'] =>
  Object.fromEntries(
    columns.flatMap((column) => {
      const times = column === 'doorward' ? undefined : compareWith(column, same)
      return times === undefined ? [] : [[column, times]]
    }),
  )

/** Doorward's figure divided by that of another server in the same round: the median over the rounds. */
const compareWith = (reference: Column, same: readonly Sample[]): number | undefined => {
  const all = same.flatMap(({ column, round, value }) => {
    const other = same.find((sample) => sample.column === reference && sample.round === round)
    return column === 'doorward' && other && other.value !== 0 ? [value / other.value] : []
  })
  return all.length > 0 ? median(all) : undefined
}
