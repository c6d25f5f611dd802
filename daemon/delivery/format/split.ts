import { closingLine, openFenceIn, openingLine } from '../../util/markdown-fence.ts'

export type Limits = {
  /** UTF-16 units of one message, as `measure` counts them. */
  readonly characters: number
  readonly parts: number
  /** How long a piece is once it is made ready to be sent. By default its length. */
  readonly measure?: (piece: string) => number
}

/**
 * Cuts a text into messages of a limited length: at the ends of paragraphs, lines or words where there are
 * any, never inside a surrogate pair; a code fence that is cut is closed and opened again, the head of a
 * table that is cut is repeated. Several are numbered; what does not fit into the last one is left out, and
 * that is said there.
 */
export const splitText = (text: string, limits: Limits): string[] => {
  const { characters, parts, measure = countLength } = limits
  // A text of megabytes is not looked at as a whole.
  if (text.length <= characters && measure(text) <= characters) return [text]
  const pieces: string[] = []
  let rest = text
  let head = ''
  while (rest !== '' && pieces.length < parts) {
    const isLast = pieces.length === parts - 1
    const number = `(${parts}/${parts})\n`
    const fits = (piece: string, note: string) =>
      measure(`${number}${closed(head + piece)}${note}`) <= characters - closingReserve
    if (rest.length <= characters && fits(rest, '')) {
      pieces.push(head + rest)
      rest = ''
      break
    }
    const note = (left: number) => (isLast ? cutNote(left, text.length) : '')
    // The longest note there can be: numbers grow shorter with what is left.
    const most = Math.min(rest.length, characters)
    const fitsNoted = (piece: string) => fits(piece, note(text.length))
    let piece = rest.slice(0, most)
    // A piece that ends earlier can be longer once it is ready: a table is aligned as far as it is narrow.
    do piece = piece.slice(0, goodEnd(piece, longestFit(piece, fitsNoted)))
    while (piece.length > 1 && !fitsNoted(piece))
    const fence = openFenceIn(head + piece)
    const tableHead = fence
      ? ''
      : headOfCutTable(head + piece, rest.slice(piece.length, piece.length + characters))
    rest = fence
      ? rest.slice(piece.length).replace(/^\n/, '')
      : // What a line is indented by says what it stands under in a list.
        rest.slice(piece.length).replace(/^\s*\n|^\s+/, '')
    const shown = closed(head + (fence ? piece : piece.trimEnd()))
    pieces.push(isLast && rest !== '' ? shown + note(rest.length) : shown)
    // One that leaves little room for rows is not repeated.
    head = fence ? `${openingLine(fence)}\n` : measure(tableHead) <= characters / 4 ? tableHead : ''
  }
  const { length } = pieces
  return length === 1 ? pieces : pieces.map((piece, index) => `(${index + 1}/${length})\n${piece}`)
}

/** A piece that ends a little earlier may have to close a fence that the longer one does not. */
const closingReserve = 64

const countLength = (piece: string): number => piece.length

const cutNote = (left: number, whole: number): string =>
  `\n\n(cut here: ${left} of ${whole} characters are left out; "doorward events show" has them while the event is in memory)`

/** With a fence that is open at its end closed. */
const closed = (piece: string): string => {
  const fence = openFenceIn(piece)
  return fence ? `${piece.replace(/\n$/, '')}\n${closingLine(fence)}` : piece
}

/** How many units of the text fit, at least one. */
const longestFit = (text: string, fits: (piece: string) => boolean): number => {
  let low = 1
  let high = text.length
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(text.slice(0, middle))) low = middle
    else high = middle - 1
  }
  return low
}

/** The end of a paragraph, line or word in the second half of what fits; else where it must be. */
const goodEnd = (text: string, end: number): number => {
  const half = Math.floor(end / 2)
  for (const border of ['\n\n', '\n', ' ']) {
    const at = text.lastIndexOf(border, end)
    if (at >= half && at > 0) return at
  }
  const splitsPair = /[\ud800-\udbff]/.test(text[end - 1] ?? '')
  return splitsPair && end > 1 ? end - 1 : end
}

const delimiterRow = /^[\s|:-]*$/
const delimiterCell = /^:?-+:?$/

/** The cells of a row of a table of GitHub's Markdown; a bar behind a backslash is none between cells. */
export const parseCells = (row: string): string[] =>
  row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))

/** True for the first two lines of a table (GitHub Flavored Markdown, section 4.10). */
export const beginsTable = (head: string, delimiter: string): boolean => {
  if (!isRow(head) || !isRow(delimiter) || !delimiterRow.test(delimiter)) return false
  const columns = parseCells(delimiter)
  return (
    columns.every((cell) => delimiterCell.test(cell)) && parseCells(head).length === columns.length
  )
}

/** True for a line that a table goes on with. */
export const isRow = (line: string): boolean => line.includes('|')

/** The two lines that a table begins with which goes on behind this place; empty where there is none. */
const headOfCutTable = (before: string, after: string): string => {
  const [end, next = ''] = after.split('\n', 2)
  if (end !== '' || !isRow(next)) return ''
  const lines = before.split('\n')
  const first = lines.findLastIndex((line) => !isRow(line)) + 1
  const [head = '', delimiter = ''] = lines.slice(first)
  return beginsTable(head, delimiter) ? `${head}\n${delimiter}\n` : ''
}
