import { stripVTControlCharacters } from 'node:util'
import { measureWidth } from '../../shared/text.ts'

/** Programs that our texts name to be run, as the beginning of a command. */
const programs =
  /^(?:npx|doorward|chmod|mkdir|kill|unset|grep|sudo|npm|ssh|git|systemctl|loginctl|launchctl)$/
/** Words that go on with the sentence after a command. */
const afterwards =
  /^(?:and|or|to|is|says|shows|lists|writes|which|that|if|then|again|with|where|wrote|has)$/

/**
 * The text with its lines broken between words, so that none is wider than `columns`. A URL or a command
 * is not broken: it begins a line. Where even that is too narrow it goes over, for a terminal breaks it where
 * it can still be copied. Lines that begin with a space are there to be copied and stay.
 */
export const wrapped = (text: string, columns: number | undefined): string =>
  columns === undefined
    ? text
    : text
        .split('\n')
        .map((line) => (line.startsWith(' ') ? line : wrapLine(line, columns)))
        .join('\n')

/** One line; those that it goes on in begin with `indent`. */
export const wrapLine = (line: string, columns: number, indent = ''): string => {
  if (countColumns(line) <= columns) return line
  const lines: string[] = []
  const [lead = ''] = /^ */.exec(line) ?? []
  let current = lead
  for (const unit of splitUnits(line.slice(lead.length))) {
    const isFirst = current.trim() === ''
    const joined = isFirst ? `${current}${unit}` : `${current} ${unit}`
    if (countColumns(joined) <= columns) {
      current = joined
      continue
    }
    if (!isFirst) lines.push(current)
    current = `${isFirst ? current : indent}${unit}`
  }
  return [...lines, current].join('\n')
}

/** Words, and commands of several words. */
const splitUnits = (line: string): string[] => {
  const units: string[] = []
  let command: string[] = []
  const end = () => {
    if (command.length > 0) units.push(command.join(' '))
    command = []
  }
  for (const word of line.split(' ')) {
    if (command.length > 0 && afterwards.test(word)) end()
    if (command.length > 0 || programs.test(word)) command.push(word)
    else units.push(word)
    if (/[,;:)]$/.test(word)) end()
  }
  end()
  return units
}

const countColumns = (text: string): number => measureWidth(stripVTControlCharacters(text))

/**
 * The lines of a text that begins where `used` columns are taken already, and goes on `indent` columns
 * in. Like `wrapLine`, it breaks no URL and no command. Without `columns` there is one line.
 */
export const wrapWords = (
  text: string,
  columns: number | undefined,
  { used = 0, indent = 0 }: { readonly used?: number; readonly indent?: number } = {},
): string[] =>
  columns === undefined
    ? [text]
    : wrapLine(`${' '.repeat(used)}${text}`, columns, ' '.repeat(indent))
        .slice(used)
        .split('\n')
