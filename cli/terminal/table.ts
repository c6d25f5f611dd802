import { cut, toPlainLine, measureWidth } from '../../shared/text.ts'
import type { Terminal } from './terminal.ts'
import { wrapLine } from './wrap.ts'

/** One cell; `paint` is applied after the text was measured and padded. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string }

/**
 * Lines of a table whose columns are two spaces apart. With `columns` one column, the last or that of the place
 * `cuts`, is cut so that no line is wider; `atLeast` are widths for lines that are drawn one by one. Every cell is
 * made plain: it may come from outside.
 */
export const tableLines = (
  rows: readonly (readonly Cell[])[],
  columns?: number,
  atLeast: readonly number[] = [],
  cuts?: number,
): string[] => {
  const texts = rows.map((row) => row.map(toText))
  const widths = [...atLeast]
  for (const row of texts)
    row.forEach((text, index) => (widths[index] = Math.max(widths[index] ?? 0, measureWidth(text))))
  const flexible = cuts ?? widths.length - 1
  if (columns !== undefined) {
    const others = widths.reduce((sum, width, at) => sum + (at === flexible ? 0 : width + 2), 0)
    widths[flexible] = Math.min(widths[flexible] ?? 0, Math.max(0, columns - others))
  }
  return rows.map((row, rowIndex) =>
    row
      .map((cell, index) => {
        const text = texts[rowIndex]?.[index] ?? ''
        const width = widths[index] ?? 0
        const isCut = index === flexible && columns !== undefined
        const fitted = isCut ? cut(text, width) : text
        const isLast = index === row.length - 1
        const padding = isLast ? '' : ' '.repeat(Math.max(0, width - measureWidth(fitted)))
        return `${typeof cell === 'string' ? fitted : cell.paint(fitted)}${padding}`
      })
      .join('  ')
      .trimEnd(),
  )
}

/**
 * The rows without the columns of these places, dropped in this order until the last column, or that of the place
 * `cuts`, has room for `lastAtLeast` columns of the terminal; `atLeast` are widths as `tableLines` takes them, and
 * come back without those of the dropped. `room` is what that column has. Without `columns` all of them stay.
 */
export const narrowed = (
  rows: readonly (readonly Cell[])[],
  columns: number | undefined,
  places: readonly number[],
  lastAtLeast: number,
  atLeast: readonly number[] = [],
  cuts?: number,
): {
  readonly rows: (readonly Cell[])[]
  readonly atLeast: readonly number[]
  readonly room: number
} => {
  const widths = [...atLeast]
  for (const row of rows)
    for (const [index, cell] of row.entries())
      if (index !== (cuts ?? row.length - 1))
        widths[index] = Math.max(widths[index] ?? 0, measureWidth(toText(cell)))
  if (cuts !== undefined) widths[cuts] = 0
  const dropped = new Set<number>()
  let room = widths.reduce((left, width) => left - width - 2, columns ?? Infinity)
  if (cuts !== undefined) room += 2
  for (const place of places) {
    if (room >= lastAtLeast) break
    dropped.add(place)
    room += (widths[place] ?? 0) + 2
  }
  const stays = (_: unknown, index: number) => !dropped.has(index)
  return { rows: rows.map((row) => row.filter(stays)), atLeast: atLeast.filter(stays), room }
}

/** The text of a cell, harmless on a terminal. */
export const toText = (cell: Cell): string =>
  toPlainLine(typeof cell === 'string' ? cell : cell.text)

/** A name, which may be empty to go on with the one above, and what is said of it. */
export type Field = readonly [name: string, value: Cell]

const nameColumns = 9

/** Prints a line for each; on a terminal long values go on below where they began. */
export const printFields = (fields: readonly Field[], { print, columns }: Terminal): void => {
  const width = (columns ?? 0) - nameColumns - 2
  for (const [name, value] of fields) {
    const text = toPlainLine(typeof value === 'string' ? value : value.text)
    const lines = width > 0 ? wrapLine(text, width).split('\n') : [text]
    const rows = lines.map((line, index): Cell[] => [
      index === 0 ? name : '',
      typeof value === 'string' ? line : { ...value, text: line },
    ])
    for (const line of tableLines(rows, undefined, [nameColumns])) print(line)
  }
}

/** Prints a title and, two columns in, a text of several lines that is harmless already. */
export const printSection = (
  title: string,
  text: string,
  { print, paint, columns }: Terminal,
): void => {
  print(`\n${paint('bold', title)}`)
  const lines = text.trimEnd().split('\n')
  const fitted = columns === undefined ? lines : lines.map((line) => wrapLine(line, columns - 2))
  print(fitted.join('\n').replace(/^(?=.)/gm, '  '))
}
