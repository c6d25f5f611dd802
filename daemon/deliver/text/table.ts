const delimiterRow = /^[\s|:-]*$/
const delimiterCell = /^:?-+:?$/

/** The cells of a row of a table of GitHub's Markdown; a bar behind a backslash is none between cells. */
export const cellsOf = (row: string): string[] =>
  row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))

/** True for the first two lines of a table (GitHub Flavored Markdown, section 4.10). */
export const beginsTable = (head: string, delimiter: string): boolean => {
  if (!isRow(head) || !isRow(delimiter) || !delimiterRow.test(delimiter)) return false
  const columns = cellsOf(delimiter)
  return (
    columns.every((cell) => delimiterCell.test(cell)) && cellsOf(head).length === columns.length
  )
}

/** True for a line that a table goes on with. */
export const isRow = (line: string): boolean => line.includes('|')

/** The two lines that a table begins with which goes on behind this place; empty where there is none. */
export const headOfCutTable = (before: string, after: string): string => {
  const [end, next = ''] = after.split('\n', 2)
  if (end !== '' || !isRow(next)) return ''
  const lines = before.split('\n')
  const first = lines.findLastIndex((line) => !isRow(line)) + 1
  const [head = '', delimiter = ''] = lines.slice(first)
  return beginsTable(head, delimiter) ? `${head}\n${delimiter}\n` : ''
}
