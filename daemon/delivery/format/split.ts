import { closingLine, openFenceIn, openingLine } from '../../util/markdown-fence.ts'

export type Limits = {
  /** The limit of one message, in UTF-16 units, as `measure` counts them. */
  readonly characters: number
  readonly parts: number
  /** The length of a piece after conversion. By default its length. */
  readonly measure?: (piece: string) => number
}

/**
 * Cuts a text into messages of a limited length, at the end of a paragraph, line or word if possible, never
 * inside a surrogate pair. Closes and reopens a code fence that is cut. Numbers the messages; the last one says
 * how much is left out.
 */
export const splitText = (text: string, limits: Limits): string[] => {
  const { characters, parts, measure = (piece: string) => piece.length } = limits
  // Without measuring megabytes.
  if (text.length <= characters && measure(text) <= characters) return [text]
  const pieces: string[] = []
  let rest = text
  let head = ''
  while (rest !== '' && pieces.length < parts) {
    const isLast = pieces.length === parts - 1
    const number = `(${parts}/${parts})\n`
    const fits = (piece: string, note: string) =>
      measure(`${number}${closeFence(head + piece)}${note}`) <= characters - closingReserve
    if (rest.length <= characters && fits(rest, '')) {
      pieces.push(head + rest)
      rest = ''
      break
    }
    const note = (left: number) => (isLast ? cutNote(left, text.length) : '')
    // Reserve room for the longest possible note: its numbers shrink with the rest.
    const fitsNoted = (piece: string) => fits(piece, note(text.length))
    let piece = rest.slice(0, characters)
    // A shorter piece can be longer after conversion: only narrow tables are aligned.
    do piece = piece.slice(0, findBreak(piece, findLongestFit(piece, fitsNoted)))
    while (piece.length > 1 && !fitsNoted(piece))
    const fence = openFenceIn(head + piece)
    rest = fence
      ? rest.slice(piece.length).replace(/^\n/, '')
      : // Keep the indentation of a line: it gives the level in a list.
        rest.slice(piece.length).replace(/^\s*\n|^\s+/, '')
    const whole = closeFence(head + (fence ? piece : piece.trimEnd()))
    pieces.push(isLast && rest !== '' ? whole + note(rest.length) : whole)
    head = fence ? `${openingLine(fence)}\n` : ''
  }
  const { length } = pieces
  return length === 1 ? pieces : pieces.map((piece, index) => `(${index + 1}/${length})\n${piece}`)
}

/** A slightly shorter piece may have to close a fence that the longer one does not. */
const closingReserve = 64

const cutNote = (left: number, whole: number): string =>
  `\n\n(cut here: ${left} of ${whole} characters are left out; "doorward events show" has them while the event is in memory)`

/** Closes a fence that is open at the end. */
const closeFence = (piece: string): string => {
  const fence = openFenceIn(piece)
  return fence ? `${piece.replace(/\n$/, '')}\n${closingLine(fence)}` : piece
}

/** How many units of the text fit, at least one. */
const findLongestFit = (text: string, fits: (piece: string) => boolean): number => {
  let low = 1
  let high = text.length
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (fits(text.slice(0, middle))) low = middle
    else high = middle - 1
  }
  return low
}

/** The end of a paragraph, line or word in the second half of what fits, or else `end`. */
const findBreak = (text: string, end: number): number => {
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

/** The cells of a table row of GitHub's Markdown; a bar after a backslash is text. */
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

/** True for a line that continues a table. */
export const isRow = (line: string): boolean => line.includes('|')
