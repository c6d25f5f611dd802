import { plainLine } from '../shared/text.ts'
import { type Cell, tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'
import { wrapLine } from './wrap.ts'

/** A name, which may be empty to go on with the one above, and what is said of it. */
export type Field = readonly [name: string, value: Cell]

const nameColumns = 9

/** Prints a line for each; on a terminal long values go on below where they began. */
export const printFields = (fields: readonly Field[], { print, columns }: Terminal): void => {
  const width = (columns ?? 0) - nameColumns - 2
  for (const [name, value] of fields) {
    const text = plainLine(typeof value === 'string' ? value : value.text)
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
