import { plainLine, plainLines } from '../../shared/text.ts'

/** A text as the page shows it, and what it does not show of it. */
export type ShownText = {
  readonly text: string
  /** Characters after the cut, in UTF-16 units. */
  readonly left: number
  /** Control, escape and direction characters that were taken out of what is shown. */
  readonly hidden: number
}

const longest = 100_000
const longestLine = 300

/** The first 100,000 characters without those that could turn or hide others. */
export const shownText = (whole: string): ShownText => {
  const first = whole.slice(0, longest).replace(halfCharacter, '')
  const text = plainLines(first)
  const hidden = first.replaceAll('\r\n', '\n').length - text.length
  return { text, left: whole.length - first.length, hidden }
}

/** A word of a sender or a program on one line, cut at 300 characters. */
export const shownLine = (whole: string): string => {
  const line = plainLine(whole.slice(0, longestLine * 2))
  return line.length > longestLine
    ? `${line.slice(0, longestLine).replace(halfCharacter, '')}…`
    : line
}

const halfCharacter = /[\ud800-\udbff]$/
