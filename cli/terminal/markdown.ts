import { stripVTControlCharacters } from 'node:util'
import { measureWidth } from '../../shared/text.ts'
import type { Style } from './terminal.ts'

/*
 * Our documents as a terminal shows them: paragraphs wrapped, headings bold, code indented and unchanged, a
 * table one entry after the other. It reads the Markdown that prettier writes, not all of CommonMark.
 */

export type Look = {
  /** Columns to keep within; only code may be wider. */
  readonly width: number
  readonly paint: (style: Style, text: string) => string
  /** The words after the text of a link, or nothing: `(doorward help providers)`. */
  readonly linked: (href: string, text: string) => string
}

/** The lines of a Markdown text. */
export const renderMarkdown = (text: string, look: Look): string[] => {
  const lines = text.replaceAll(/<!--[^]*?-->/g, '').split('\n')
  const blocks: string[] = []
  for (let at = 0; at < lines.length;) {
    const end = findEnd(lines, at)
    blocks.push(...renderBlock(lines.slice(at, end), look))
    at = end
  }
  const shown = blocks.filter((line, index) => line !== '' || (blocks[index - 1] ?? '') !== '')
  return shown.at(-1) === '' ? shown.slice(0, -1) : shown
}

const fence = /^ *```/
const item = /^ *(?:[-*]|\d+\.) /
const startsBlock = (line: string): boolean => line === '' || /^ *(?:```|\||#+ )/.test(line)

/** The line after the block that begins at this one. */
const findEnd = (lines: readonly string[], from: number): number => {
  const first = lines[from] ?? ''
  const isIn = (line: string): boolean => {
    if (fence.test(first)) return !fence.test(line)
    if (first.startsWith('|')) return line.startsWith('|')
    return !startsBlock(first) && !startsBlock(line) && !item.test(line)
  }
  let end = from + 1
  while (end < lines.length && isIn(lines[end] ?? '')) end += 1
  return fence.test(first) ? end + 1 : end
}

const renderBlock = (lines: readonly string[], look: Look): string[] => {
  const [first = ''] = lines
  if (first === '') return ['']
  if (fence.test(first)) return lines.slice(1, -1).map((line) => `    ${line}`.trimEnd())
  if (first.startsWith('|')) return renderTable(lines, look)
  const [, heading] = /^#+ (.*)$/.exec(first) ?? []
  if (heading !== undefined) return wrap(look.paint('bold', renderText(heading, look)), look.width)
  const [mark = ''] = item.exec(first) ?? /^ */.exec(first) ?? []
  const text = [first.slice(mark.length), ...lines.slice(1)].map((line) => line.trim()).join(' ')
  return wrap(renderText(text, look), look.width, mark, ' '.repeat(mark.length))
}

const spans =
  /`([^`]+)`|!\[[^\]]*\]\([^)]*\)|\[([^\]]+)\]\(([^)]*)\)|\*\*(.+?)\*\*|(?<=^|[\s(])\*([^*\s][^*]*)\*|<(https?:[^>]+)>|\\([^\w\s])/g

/** The text of a paragraph without its marks. Without colours, back quotes mark what is to be typed. */
const renderText = (text: string, look: Look): string =>
  text.replaceAll(spans, (_, code, link, href, bold, italic, url, escaped) => {
    const { paint, linked } = look
    if (code) return paint('cyan', 'x') === 'x' ? `\`${code}\`` : paint('cyan', code)
    if (link) return `${renderText(link, look)} ${linked(href, link)}`.trimEnd()
    if (bold) return paint('bold', renderText(bold, look))
    return italic ? paint('italic', renderText(italic, look)) : (url ?? escaped ?? '')
  })

/** Breaks a text between words. */
const wrap = (text: string, width: number, first = '', others = first): string[] => {
  const lines: string[] = []
  let line = ''
  const indent = () => (lines.length === 0 ? first : others)
  for (const word of text.split(/ +/)) {
    const joined = line === '' ? word : `${line} ${word}`
    if (line !== '' && measureWidth(stripVTControlCharacters(indent() + joined)) > width) {
      lines.push(indent() + line)
      line = word
    } else line = joined
  }
  return line === '' ? lines : [...lines, indent() + line]
}

/** Each row as its first cell, with the others below it by the names of their columns. */
const renderTable = ([header = '', , ...rows]: readonly string[], look: Look): string[] => {
  const toCells = (row: string) =>
    row
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll(String.raw`\|`, '|'))
  const [, ...names] = toCells(header)
  return rows.flatMap((row) => {
    const [name = '', ...cells] = toCells(row)
    const details = cells.flatMap((cell, at) => {
      const label = names.length > 1 && names[at] ? `${look.paint('bold', names[at])}: ` : ''
      return cell === '' ? [] : wrap(`${label}${renderText(cell, look)}`, look.width, '  ')
    })
    return [...wrap(renderText(name, look), look.width), ...details, '']
  })
}
