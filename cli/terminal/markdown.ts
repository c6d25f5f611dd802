import { type Token, type Tokens, lexer } from 'marked'
import type { Style } from './terminal.ts'
import { measureWidth } from '../../shared/text.ts'

/*
 * Markdown as a terminal shows it: wrapped to its width, headings bold, code indented and as it is, tables
 * in columns, or one entry after the other where there is no room for columns. Pure.
 */

export type Look = {
  /** Columns to keep within; code alone may be wider. */
  readonly width: number
  readonly paint: (style: Style, text: string) => string
  /** What stands after the text of a link, or nothing: `(doorward help providers)`. */
  readonly linked: (href: string, text: string) => string
}

/** The lines of a Markdown text. */
export const renderMarkdown = (text: string, look: Look): string[] =>
  trimmed(blocks(lexer(text), look))

const trimmed = (lines: readonly string[]): string[] => {
  const first = lines.findIndex((line) => line !== '')
  const last = lines.findLastIndex((line) => line !== '')
  return first === -1 ? [] : lines.slice(first, last + 1)
}

const blocks = (tokens: readonly Token[], look: Look): string[] =>
  tokens.flatMap((token) => {
    const lines = block(token, look)
    return lines.length === 0 ? [] : [...lines, '']
  })

const block = (token: Token, look: Look): string[] => {
  switch (token.type) {
    case 'heading':
      return wrap(pieces(getInlineTokens(token), look, 'bold'), look)
    case 'paragraph':
    case 'text':
      return wrap(pieces(getInlineTokens(token), look), look)
    case 'code':
      return (token as Tokens.Code).text.split('\n').map((line) => `    ${line}`.trimEnd())
    case 'list':
      return list(token as Tokens.List, look)
    case 'table':
      return table(token as Tokens.Table, look)
    case 'blockquote':
      return indented(blocks(getInlineTokens(token), narrower(look, 2)), '  ', '  ')
    default:
      return []
  }
}

const getInlineTokens = (token: Token): Token[] =>
  'tokens' in token && token.tokens ? token.tokens : []

const narrower = (look: Look, by: number): Look => ({ ...look, width: look.width - by })

const indented = (lines: readonly string[], first: string, others: string): string[] =>
  trimmed(lines).map((line, index) => (line === '' ? '' : `${index === 0 ? first : others}${line}`))

const list = ({ items, ordered, start, loose }: Tokens.List, look: Look): string[] => {
  const lines = items.flatMap((item, index) => {
    const mark = ordered ? `${(start || 1) + index}. ` : '- '
    const inside = narrower(look, mark.length)
    // Within an item a paragraph is of the kind `text`; what follows it stands right below.
    const content = item.tokens.flatMap((token) => {
      const made = block(token, inside)
      return token.type === 'code' || loose ? ['', ...made, ''] : made
    })
    return indented(withoutDoubles(content), mark, ' '.repeat(mark.length)).concat(
      loose ? [''] : [],
    )
  })
  return trimmed(lines)
}

const withoutDoubles = (lines: readonly string[]): string[] =>
  lines.filter((line, index) => line !== '' || lines[index - 1] !== '')

/** A text in one style, of which a word can have several. */
type Piece = { readonly text: string; readonly style: Style | undefined }

const pieces = (tokens: readonly Token[], look: Look, style?: Style): Piece[] =>
  tokens.flatMap((token): Piece[] => {
    switch (token.type) {
      case 'strong':
        return pieces(getInlineTokens(token), look, style ?? 'bold')
      case 'em':
      case 'del':
        return pieces(getInlineTokens(token), look, style ?? 'italic')
      case 'codespan':
        return [codePiece((token as Tokens.Codespan).text, look, style)]
      case 'br':
        return [{ text: '\n', style }]
      case 'link': {
        const { href, text } = token as Tokens.Link
        const more = look.linked(href, text)
        return [
          ...pieces(getInlineTokens(token), look, style),
          ...(more === '' ? [] : [{ text: ` ${more}`, style }]),
        ]
      }
      case 'text':
      case 'escape':
        return 'tokens' in token && token.tokens
          ? pieces(token.tokens, look, style)
          : [{ text: token.type === 'escape' ? token.text : token.raw, style }]
      // A picture, or a comment.
      default:
        return []
    }
  })

/** Without colours the marks of the source say that it is to be typed. */
const codePiece = (text: string, { paint }: Look, style: Style = 'cyan'): Piece => ({
  text: paint(style, 'x') === 'x' ? `\`${text}\`` : text,
  style,
})

type Word = { readonly pieces: readonly Piece[]; readonly width: number }

/** Words, and undefined where a line ends whatever its width. */
const toWords = (all: readonly Piece[]): (Word | undefined)[] => {
  const words: (Word | undefined)[] = []
  let current: Piece[] = []
  const close = () => {
    if (current.length === 0) return
    words.push({
      pieces: current,
      width: current.reduce((width, { text }) => width + measureWidth(text), 0),
    })
    current = []
  }
  for (const { text, style } of all)
    for (const part of text.split(/(\s+)/)) {
      if (part === '') continue
      if (/^\s/.test(part)) {
        close()
        // A line end in the source is a space; only a hard break is one of its own.
        if (text === '\n') words.push(undefined)
      } else current.push({ text: part, style })
    }
  close()
  return words
}

const wrap = (all: readonly Piece[], { width, paint }: Look): string[] => {
  const lines: string[] = []
  let line = ''
  let used = 0
  const end = () => {
    if (line !== '') lines.push(line)
    line = ''
    used = 0
  }
  for (const word of toWords(all)) {
    if (!word) {
      end()
      continue
    }
    if (used > 0 && used + 1 + word.width > width) end()
    const shown = word.pieces
      .map(({ text, style }) => (style === undefined ? text : paint(style, text)))
      .join('')
    line += used > 0 ? ` ${shown}` : shown
    used += (used > 0 ? 1 : 0) + word.width
  }
  end()
  return lines
}

/** Below this a column is no longer readable, unless all that it holds is shorter. */
const narrowest = 12
const gap = 2

const table = ({ header, rows }: Tokens.Table, look: Look): string[] => {
  const cells = (row: readonly Tokens.TableCell[], style?: Style) =>
    row.map(({ tokens }) => pieces(tokens, look, style))
  const head = cells(header, 'bold')
  const body = rows.map((row) => cells(row))
  const hasHead = header.some(({ text }) => text.trim() !== '')
  const all = hasHead ? [head, ...body] : body

  const natural = header.map((_, at) => Math.max(...all.map((row) => countLength(row[at] ?? []))))
  const longestWord = header.map((_, at) =>
    Math.max(...all.flatMap((row) => toWords(row[at] ?? []).map((word) => word?.width ?? 0))),
  )
  const room = look.width - gap * (header.length - 1)
  const widths = fitted(natural, longestWord, room)
  if (!widths) return records(hasHead ? head : [], body, look)
  return all.flatMap((row) => besides(row, widths, look))
}

const countLength = (cell: readonly Piece[]): number =>
  toWords(cell).reduce((width, word, at) => width + (word?.width ?? 0) + (at > 0 ? 1 : 0), 0)

/** Widths of columns that share this room, or undefined where they would be too narrow to be read. */
const fitted = (
  natural: readonly number[],
  longestWord: readonly number[],
  room: number,
): number[] | undefined => {
  const least = natural.map((width, at) =>
    Math.min(width, Math.max(longestWord[at] ?? 0, narrowest)),
  )
  const spare = room - sum(least)
  if (spare < 0) return undefined
  const wanted = natural.map((width, at) => width - (least[at] ?? 0))
  const share = Math.min(1, spare / Math.max(1, sum(wanted)))
  return least.map((width, at) => width + Math.floor((wanted[at] ?? 0) * share))
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, one) => total + one, 0)

const besides = (
  row: readonly (readonly Piece[])[],
  widths: readonly number[],
  look: Look,
): string[] => {
  const columns = row.map((cell, at) => ({
    lines: wrap(cell, { ...look, width: widths[at] ?? 0 }),
    plain: wrap(cell, { ...look, width: widths[at] ?? 0, paint: (_, text) => text }),
  }))
  const height = Math.max(1, ...columns.map(({ lines }) => lines.length))
  return Array.from({ length: height }, (_, line) =>
    columns
      .map(({ lines, plain }, at) => {
        const padding = (widths[at] ?? 0) - measureWidth(plain[line] ?? '')
        return `${lines[line] ?? ''}${' '.repeat(Math.max(0, padding))}`
      })
      .join(' '.repeat(gap))
      .trimEnd(),
  )
}

/** Each row as its first cell, with the others below it. */
const records = (
  head: readonly (readonly Piece[])[],
  body: readonly (readonly (readonly Piece[])[])[],
  look: Look,
): string[] => {
  const inside = narrower(look, 2)
  const lines = body.flatMap(([first = [], ...others]) => [
    ...wrap(first, look),
    ...others.flatMap((cell, at) => {
      const name = head[at + 1] ?? []
      if (cell.length === 0) return []
      const label: Piece[] = name.length === 0 ? [] : [...name, { text: ': ', style: 'bold' }]
      return indented(wrap([...label, ...cell], inside), '  ', '  ')
    }),
    '',
  ])
  return trimmed(lines)
}
