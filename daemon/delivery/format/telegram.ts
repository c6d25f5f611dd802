import { measureWidth } from '../../../shared/text.ts'
import { closingLine, type Fence, fenceAfter, openingLine } from '../../util/markdown-fence.ts'
import { zeroWidthSpace } from './links.ts'
import { beginsTable, parseCells, isRow } from './split.ts'

/** Formatting of a part of the text, in UTF-16 units (core.telegram.org/bots/api, MessageEntity). */
export type TelegramEntity = {
  readonly type: 'bold' | 'italic' | 'strikethrough' | 'code' | 'pre' | 'text_link'
  readonly offset: number
  readonly length: number
  readonly language?: string
  readonly url?: string
}

export type TelegramText = {
  readonly text: string
  readonly entities: readonly TelegramEntity[]
}

/**
 * Converts Markdown to plain text with entities, so that nothing needs escaping and invalid formatting is
 * shown as it is. `@names` outside code notify no one.
 */
export const telegramText = (markdown: string): TelegramText => {
  const formatted = new FormattedText()
  alignTables(parseBlocks(markdown)).forEach((block, index) => {
    if (index > 0) formatted.add('\n')
    if ('line' in block) addLine(block.line, formatted)
    else {
      const { language } = block
      const format = { type: 'pre', ...(language === '' ? {} : { language }) } as const
      formatted.add(block.code.join('\n'), format)
    }
  })
  return formatted.toTelegramText()
}

/** The same Markdown with aligned code instead of tables, for where Markdown has none. */
export const withAlignedTables = (markdown: string): string => {
  const blocks = parseBlocks(markdown)
  const aligned = alignTables(blocks)
  if (blocks.length === aligned.length) return markdown
  return aligned
    .map((block) => {
      if ('line' in block) return block.line
      const { code, fence } = block
      if (fence) return [openingLine(fence), ...code, closingLine(fence)].join('\n')
      // Backticks of a cell would end the code.
      const table = code.join('\n').replaceAll('```', `\`${zeroWidthSpace}\`\``)
      return `\`\`\`\n${table}\n\`\`\``
    })
    .join('\n')
}

type Block =
  | { readonly line: string }
  /** A table has no fence of its own. */
  | { readonly code: string[]; readonly language: string; readonly fence?: Fence }

/** Lines of text, and blocks of code without their fences. */
const parseBlocks = (markdown: string): Block[] => {
  const blocks: Block[] = []
  let fence: Fence | undefined
  let code: string[] = []
  for (const line of markdown.split('\n')) {
    const after = fenceAfter(line, fence)
    if (!fence && after) {
      code = []
      blocks.push({ code, language: after.language, fence: after })
    } else if (fence && after) code.push(line)
    else if (!fence) blocks.push({ line })
    fence = after
  }
  return blocks
}

/** Wider tables wrap on most screens, and are unchanged. */
const maxTableWidth = 60

/** Tables as code blocks with aligned columns: a proportional font makes them unreadable. */
const alignTables = (blocks: readonly Block[]): Block[] => {
  const shown: Block[] = []
  for (let at = 0; at < blocks.length;) {
    const rows = getTableAt(blocks, at)
    const code = rows.length === 0 ? undefined : alignTable(rows)
    if (code) shown.push({ code, language: '' })
    else shown.push(...blocks.slice(at, at + Math.max(1, rows.length)))
    at += Math.max(1, rows.length)
  }
  return shown
}

const getLineAt = (blocks: readonly Block[], at: number): string => {
  const block = blocks[at]
  return block && 'line' in block ? block.line : ''
}

/** The lines of the table that begins here. */
const getTableAt = (blocks: readonly Block[], start: number): string[] => {
  if (!beginsTable(getLineAt(blocks, start), getLineAt(blocks, start + 1))) return []
  const rows: string[] = []
  for (let at = start; isRow(getLineAt(blocks, at)); at += 1) rows.push(getLineAt(blocks, at))
  return rows
}

/** Undefined when a link would be lost or the table is too wide. */
const alignTable = ([head = '', delimiter = '', ...rest]: readonly string[]):
  string[] | undefined => {
  const sides = parseCells(delimiter).map((cell) => /^-+:$/.test(cell))
  const rows = [head, ...rest].map((row) => parseCells(row).slice(0, sides.length).map(toPlainCell))
  if (rows.flat().some((cell) => cell === undefined)) return undefined
  const widths = sides.map((_, column) =>
    Math.max(1, ...rows.map((row) => measureWidth(row[column] ?? ''))),
  )
  if (widths.reduce((sum, width) => sum + width + 3, -3) > maxTableWidth) return undefined
  const [first = '', ...others] = rows.map((row) =>
    sides
      .map((isRight, column) => {
        const cell = row[column] ?? ''
        const padding = ' '.repeat((widths[column] ?? 0) - measureWidth(cell))
        return isRight ? padding + cell : cell + padding
      })
      .join(' | ')
      .trimEnd(),
  )
  return [first, widths.map((width) => '-'.repeat(width)).join('-|-'), ...others]
}

/** Code has no formatting; undefined for a cell with a link. */
const toPlainCell = (cell: string): string | undefined => {
  if (/https?:\/\//.test(cell)) return undefined
  const formatted = new FormattedText()
  addInline(cell, formatted, [])
  return formatted.toTelegramText().text.replaceAll(zeroWidthSpace, '')
}

class FormattedText {
  #text = ''
  readonly #entities: TelegramEntity[] = []

  add(piece: string, ...formats: readonly Format[]): void {
    // As in `@**name**`.
    if (this.#text.endsWith('@') && /^[A-Za-z0-9_]/.test(piece)) this.#text += zeroWidthSpace
    const offset = this.#text.length
    this.#text += piece
    const { length } = piece
    if (piece.trim() === '') return
    for (const format of formats) this.#entities.push({ ...format, offset, length })
  }

  toTelegramText(): TelegramText {
    const text = this.#text.trimEnd()
    const entities = this.#entities.flatMap(({ length, ...entity }) => {
      const left = Math.min(length, text.length - entity.offset)
      return left > 0 ? [{ ...entity, length: left }] : []
    })
    return { text, entities }
  }
}

type Format = Omit<TelegramEntity, 'offset' | 'length'>

const heading = /^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$/

const addLine = (line: string, text: FormattedText): void => {
  const title = heading.exec(line)?.[1]
  if (title === undefined) addInline(line, text, [])
  else addInline(title, text, [{ type: 'bold' }])
}

// In order of precedence; each within one line. Underscores inside words and paths are text, and so is
// `/**/`.
const inline = new RegExp(
  [
    /\\(?<escaped>[*_`~])/,
    /(?<!`)(?<ticks>`+)(?<code>[^`]+)\k<ticks>(?!`)/,
    /(?<!!)\[(?<label>(?:[^[\]]|\[[^[\]]*\])+)\]\((?<url>https?:\/\/(?:[^\s()<>]|\([^\s()<>]*\))+)(?:\s+(?:"[^"]*"|'[^']*'))?\)/,
    /(?<address>https?:\/\/[^\s<>`]+)/,
    /\*\*\*(?=[^\s*])(?<both>[^*]+?)(?<=[^\s*])\*\*\*/,
    /(?!(?<=\/)\*\*\/)\*\*(?=[^\s*])(?<bold>(?:[^*]|\*(?!\*))+?)(?<=\S)\*\*/,
    /(?<![_\w/])__(?=[^\s_])(?<heavy>[^_]+?)(?<=[^\s_])__(?![_\w/]|\.\w)/,
    /(?<![*\w])\*(?=[^\s*])(?<starred>(?:[^*]|\*\*[^*]+\*\*)+?)(?<=\S)\*(?![*\w])/,
    /(?<![_\w])_(?=[^\s_])(?<lined>[^_]+?)(?<=[^\s_])_(?![_\w])/,
    /~~(?=\S)(?<struck>[^~]+?)(?<=\S)~~/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
)

const addInline = (line: string, text: FormattedText, outer: readonly Format[]): void => {
  let end = 0
  const inside = (piece: string, ...formats: readonly Format[]) =>
    addInline(piece, text, [...outer, ...formats])
  for (const match of line.matchAll(inline)) {
    text.add(breakMentions(line.slice(end, match.index)), ...outer)
    end = match.index + match[0].length
    const { escaped, code, label, url = '', address, ...marked } = match.groups ?? {}
    const { both, bold, heavy, starred, lined, struck } = marked
    if (escaped !== undefined) text.add(escaped, ...outer)
    // A link cannot contain code: keep the link.
    else if (code !== undefined && isLink(outer)) text.add(breakMentions(code), ...outer)
    else if (code !== undefined) text.add(code, { type: 'code' })
    else if (label !== undefined) inside(label, { type: 'text_link', url })
    // A zero width space would change the URL.
    else if (address !== undefined)
      text.add(breakMentions(address.replaceAll('/@', '/%40')), ...outer)
    else if (struck !== undefined) inside(struck, { type: 'strikethrough' })
    else if (both !== undefined) inside(both, boldFormat, italicFormat)
    else if (bold !== undefined || heavy !== undefined) inside(bold ?? heavy ?? '', boldFormat)
    else inside(starred ?? lined ?? '', italicFormat)
  }
  text.add(breakMentions(line.slice(end)), ...outer)
}

const boldFormat: Format = { type: 'bold' }
const italicFormat: Format = { type: 'italic' }

const isLink = (formats: readonly Format[]): boolean =>
  formats.some(({ type }) => type === 'text_link')

/** After a letter or digit there is no mention (a mail address). */
const breakMentions = (text: string): string =>
  text.replace(/(?<![A-Za-z0-9])@(?=[A-Za-z0-9_])/g, `@${zeroWidthSpace}`)
