import type { Row } from './rows.ts'
import { columns, type Sample } from './sample.ts'
import { median } from '../quantile.ts'

/** A table of texts, the first line its head. */
export type Table = readonly (readonly string[])[]

export const goalsTable = (rows: readonly Row[]): Table => {
  const used = columns.filter((column) => rows.some(({ values }) => values[column] !== undefined))
  return [
    ['what', 'measure', ...used, '× bare', 'goal', 'holds'],
    ...rows.map(({ row, measure, values, times, goal = '', holds }, index) => [
      // Said once for all measures of it.
      rows[index - 1]?.row === row ? '' : row,
      measure,
      ...used.map((column) => shown(values[column])),
      times.bare === undefined ? '' : times.bare.toFixed(2),
      goal,
      holds === undefined ? '' : holds ? 'yes' : 'MISSED',
    ]),
  ]
}

/** Growth: a line for each state that was looked at, a column for each measure. */
export const growthTable = (samples: readonly Sample[]): Table => {
  const rows = [...new Set(samples.map(({ row }) => row))]
  const measures = [...new Set(samples.map(({ measure }) => measure))]
  const value = (row: string, measure: string) => {
    const of = samples.filter((one) => one.row === row && one.measure === measure)
    return of.length > 0 ? median(of.map((one) => one.value)) : undefined
  }
  return [
    ['with', ...measures],
    ...rows.map((row) => [row, ...measures.map((measure) => shown(value(row, measure)))]),
  ]
}

const shown = (value: number | undefined): string => {
  if (value === undefined) return ''
  if (Math.abs(value) >= 100 || Number.isInteger(value))
    return Math.round(value).toLocaleString('en')
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2)
}

const isRightAligned = (column: number): boolean => column >= 2

export const asText = (table: Table): string => {
  const widths = widthsOf(table)
  return table
    .map((line) =>
      line
        .map((cell, column) =>
          isRightAligned(column)
            ? cell.padStart(widths[column] ?? 0)
            : cell.padEnd(widths[column] ?? 0),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** As prettier leaves it. */
export const asMarkdown = (table: Table): string => {
  const widths = widthsOf(table).map((width) => Math.max(3, width))
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const padded = table.map((cells) =>
    line(cells.map((cell, column) => cell.padEnd(widths[column] ?? 0))),
  )
  const [head = '', ...rest] = padded
  return [head, line(widths.map((width) => '-'.repeat(width))), ...rest].join('\n')
}

const widthsOf = (table: Table): number[] =>
  (table[0] ?? []).map((_, column) => Math.max(...table.map((line) => (line[column] ?? '').length)))
