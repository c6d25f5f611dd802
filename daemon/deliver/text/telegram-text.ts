import { type Fence, fenceAfter } from './fence.ts'
import { gap } from './gap.ts'

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
  blocksOf(markdown).forEach((block, index) => {
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
const blocksOf = (markdown: string): Block[] => {
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

/** Text that grows, and its formatting. */
class Formatted {
  #text = ''
  readonly #entities: TelegramEntity[] = []

  add(piece: string, ...formats: readonly Format[]): void {
    // What was between the sign and the name is formatting: `@**name**`.
    if (this.#text.endsWith('@') && /^[A-Za-z0-9_]/.test(piece)) this.#text += gap
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
    /(?<![*\w])\*(?=[^\s*])(?<starred>[^*]+?)(?<=[^\s*])\*(?![*\w])/,
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
  text.replace(/(?<![A-Za-z0-9])@(?=[A-Za-z0-9_])/g, `@${gap}`)
