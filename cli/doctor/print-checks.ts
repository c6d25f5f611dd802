import { plainLine, widthOf } from '../../shared/text.ts'
import type { Style, Terminal } from '../terminal.ts'
import { wrapWords } from '../wrap-words.ts'
import { type Check, type CheckStatus, groups, summaryOf } from './check.ts'

type Page = Pick<Terminal, 'columns' | 'paint'>

const marks: Readonly<Record<CheckStatus, readonly [string, Style]>> = {
  ok: ['✓', 'green'],
  warning: ['!', 'yellow'],
  error: ['✗', 'red'],
  skipped: ['-', 'gray'],
}

/** Below this, what a check says stands under its name. */
const narrowest = 60
const widestName = 22

/** The checks as lines, by groups: mark, name and detail, and under it what mends it. */
export const checkLines = (checks: readonly Check[], page: Page): string[] => {
  const names = checks.map(({ name }) => widthOf(plainLine(name)))
  const width = Math.min(widestName, Math.max(0, ...names))
  return groups.flatMap((group) => {
    const own = checks.filter((check) => check.group === group)
    if (own.length === 0) return []
    const title = `${group.charAt(0).toUpperCase()}${group.slice(1)}`
    // What mends several at once is said once.
    const shown = own.map((check, index) =>
      check.hint !== undefined && check.hint === own[index + 1]?.hint
        ? { ...check, hint: undefined }
        : check,
    )
    return [page.paint('bold', title), ...shown.flatMap((check) => linesOf(check, width, page)), '']
  })
}

const linesOf = (
  {
    name: given,
    status,
    detail,
    hint,
  }: Omit<Check, 'hint'> & { readonly hint?: string | undefined },
  width: number,
  { columns, paint }: Page,
): string[] => {
  const [sign, style] = marks[status]
  const mark = paint(style, sign)
  const name = plainLine(given)
  const isNarrow = columns !== undefined && columns < narrowest
  const indent = isNarrow ? 4 : width + 6
  const fits = !isNarrow && widthOf(name) <= width
  const text = plainLine(detail)
  const first = `  ${mark} ${name}`
  const firstWidth = widthOf(name) + 4
  const lines = fits
    ? wrapWords(text, columns, { used: indent, indent }).map((line, index) =>
        index === 0 ? `${first}${' '.repeat(width - widthOf(name))}  ${line}` : line,
      )
    : columns === undefined || firstWidth + 2 + widthOf(text) <= columns
      ? [`${first}  ${text}`]
      : [first, ...indented(text, columns, indent)]
  if (hint === undefined) return lines
  const [start = '', ...rest] = wrapWords(plainLine(hint), columns, {
    used: indent + 2,
    indent: indent + 2,
  })
  return [...lines, `${' '.repeat(indent)}→ ${start}`, ...rest]
}

const indented = (text: string, columns: number, indent: number): string[] => {
  const [start = '', ...rest] = wrapWords(text, columns, { used: indent, indent })
  return [`${' '.repeat(indent)}${start}`, ...rest]
}

/** `2 errors, 1 warning, 20 ok, 4 not checked`, without what there is none of. */
export const summaryLine = (checks: readonly Check[]): string => {
  const { error, warning, ok, skipped } = summaryOf(checks)
  const count = (number: number, word: string) => `${number} ${word}${number === 1 ? '' : 's'}`
  return [
    error > 0 ? count(error, 'error') : [],
    warning > 0 ? count(warning, 'warning') : [],
    ok > 0 ? `${ok} ok` : [],
    skipped > 0 ? `${skipped} not checked` : [],
  ]
    .flat()
    .join(', ')
}
