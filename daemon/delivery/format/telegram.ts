import { measureWidth } from '../../../shared/text.ts'
import { type Fence, fenceAfter } from '../../util/markdown-fence.ts'
import { zeroWidthSpace } from './mentions.ts'
import { beginsTable, parseCells, isRow } from './split.ts'

/** A stretch of formatted text, in UTF-16 units (core.telegram.org/bots/api, MessageEntity). */
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
 * Plain text with formatting beside it, made of Markdown: nothing has to be escaped, and what looks like
 * formatting but is none stays as it is. `@names` outside of code call nobody.
 */
export const telegramText = (markdown: string): TelegramText => {
  const formatted = new Formatted()
  withTables(parseBlocks(markdown)).forEach((block, index) => {
    if (index > 0) formatted.add('\n')
    if ('line' in block) addLine(block.line, formatted)
    else {
      const { language } = block
      const format = { type: 'pre', ...(language === '' ? {} : { language }) } as const
      formatted.add(block.code.join('\n'), format)
    }
  })
  return formatted.end()
}

type Block = { readonly line: string } | { readonly code: string[]; readonly language: string }

/** Lines of text, and whole blocks of code without the lines of their fences. */
const parseBlocks = (markdown: string): Block[] => {
  const blocks: Block[] = []
  let fence: Fence | undefined
  let code: string[] = []
  for (const line of markdown.split('\n')) {
    const after = fenceAfter(line, fence)
    if (!fence && after) {
      code = []
      blocks.push({ code, language: after.language })
    } else if (fence && after) code.push(line)
    else if (!fence) blocks.push({ line })
    fence = after
  }
  return blocks
}

/** A wider one would be folded on most screens, and is left as it is written. */
const widestTable = 60

/** Tables as blocks of code with aligned columns: as text of a proportional font they cannot be read. */
const withTables = (blocks: readonly Block[]): Block[] => {
  const shown: Block[] = []
  for (let at = 0; at < blocks.length;) {
    const rows = tableAt(blocks, at)
    const code = rows.length === 0 ? undefined : alignedTable(rows)
    if (code) shown.push({ code, language: '' })
    else shown.push(...blocks.slice(at, at + Math.max(1, rows.length)))
    at += Math.max(1, rows.length)
  }
  return shown
}

const lineAt = (blocks: readonly Block[], at: number): string => {
  const block = blocks[at]
  return block && 'line' in block ? block.line : ''
}

/** The lines of the table that begins here. */
const tableAt = (blocks: readonly Block[], start: number): string[] => {
  if (!beginsTable(lineAt(blocks, start), lineAt(blocks, start + 1))) return []
  const rows: string[] = []
  for (let at = start; isRow(lineAt(blocks, at)); at += 1) rows.push(lineAt(blocks, at))
  return rows
}

/** Nothing where a link would be lost, or the table is too wide. */
const alignedTable = ([head = '', delimiter = '', ...rest]: readonly string[]):
  string[] | undefined => {
  const sides = parseCells(delimiter).map((cell) => /^-+:$/.test(cell))
  const rows = [head, ...rest].map((row) => parseCells(row).slice(0, sides.length).map(plainCell))
  if (rows.flat().some((cell) => cell === undefined)) return undefined
  const widths = sides.map((_, column) =>
    Math.max(1, ...rows.map((row) => measureWidth(row[column] ?? ''))),
  )
  if (widths.reduce((sum, width) => sum + width + 3, -3) > widestTable) return undefined
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

/** Code has no formatting in it. */
const plainCell = (cell: string): string | undefined => {
  if (/https?:\/\//.test(cell)) return undefined
  const formatted = new Formatted()
  addInline(cell, formatted, [])
  return formatted.end().text.replaceAll(zeroWidthSpace, '')
}

/** Text that grows, and its formatting. */
class Formatted {
  #text = ''
  readonly #entities: TelegramEntity[] = []

  add(piece: string, ...formats: readonly Format[]): void {
    // What was between the sign and the name is formatting: `@**name**`.
    if (this.#text.endsWith('@') && /^[A-Za-z0-9_]/.test(piece)) this.#text += zeroWidthSpace
    const offset = this.#text.length
    this.#text += piece
    const { length } = piece
    if (piece.trim() === '') return
    for (const format of formats) this.#entities.push({ ...format, offset, length })
  }

  end(): TelegramText {
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

const addLine = (line: string, text: Formatted): void => {
  const title = heading.exec(line)?.[1]
  if (title === undefined) addInline(line, text, [])
  else addInline(title, text, [{ type: 'bold' }])
}

// In the order in which they bind. Each ends in the line in which it begins. Underscores are none inside of
// words and paths, and `/**/` is none.
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

const addInline = (line: string, text: Formatted, outer: readonly Format[]): void => {
  let end = 0
  const inside = (piece: string, ...formats: readonly Format[]) =>
    addInline(piece, text, [...outer, ...formats])
  for (const match of line.matchAll(inline)) {
    text.add(quiet(line.slice(end, match.index)), ...outer)
    end = match.index + match[0].length
    const { escaped, code, label, url = '', address, ...marked } = match.groups ?? {}
    const { both, bold, heavy, starred, lined, struck } = marked
    if (escaped !== undefined) text.add(escaped, ...outer)
    // In a link there can be no code: the address is worth more.
    else if (code !== undefined && isLink(outer)) text.add(quiet(code), ...outer)
    else if (code !== undefined) text.add(code, { type: 'code' })
    else if (label !== undefined) inside(label, { type: 'text_link', url })
    // A gap would make it another address.
    else if (address !== undefined) text.add(quiet(address.replaceAll('/@', '/%40')), ...outer)
    else if (struck !== undefined) inside(struck, { type: 'strikethrough' })
    else if (both !== undefined) inside(both, boldFormat, italicFormat)
    else if (bold !== undefined || heavy !== undefined) inside(bold ?? heavy ?? '', boldFormat)
    else inside(starred ?? lined ?? '', italicFormat)
  }
  text.add(quiet(line.slice(end)), ...outer)
}

const boldFormat: Format = { type: 'bold' }
const italicFormat: Format = { type: 'italic' }

const isLink = (formats: readonly Format[]): boolean =>
  formats.some(({ type }) => type === 'text_link')

/** A gap between the sign and the name; behind a letter or digit there is none (a mail address). */
const quiet = (text: string): string =>
  text.replace(/(?<![A-Za-z0-9])@(?=[A-Za-z0-9_])/g, `@${zeroWidthSpace}`)
