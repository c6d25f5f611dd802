import { telegramText, type TelegramEntity } from './telegram.ts'

/*
 * The Atlassian Document Format of comments (developer.atlassian.com/cloud/jira/platform/apis/document/structure).
 * Text is text there: no answer can mention a person or load a picture, as it could in wiki markup.
 */

type AdfNode = {
  readonly type: string
  readonly text?: string
  readonly attrs?: object
  readonly marks?: readonly object[]
  readonly content?: readonly AdfNode[]
}

type Piece = { readonly text: string; readonly formats: readonly TelegramEntity[] }

/** Markdown as a document. */
export const toAdf = (markdown: string): object => {
  const content: AdfNode[] = []
  let paragraph: AdfNode[] = []
  const endParagraph = () => {
    while (paragraph.at(-1)?.type === 'hardBreak') paragraph.pop()
    if (paragraph.length > 0) content.push({ type: 'paragraph', content: paragraph })
    paragraph = []
  }
  for (const { text, formats } of splitPieces(markdown)) {
    const code = formats.find(({ type }) => type === 'pre')
    if (code) {
      endParagraph()
      const attrs = code.language === undefined ? {} : { attrs: { language: code.language } }
      content.push({ type: 'codeBlock', ...attrs, content: [{ type: 'text', text }] })
      continue
    }
    text.split('\n').forEach((line, index) => {
      if (index > 0 && paragraph.at(-1)?.type === 'hardBreak') endParagraph()
      else if (index > 0 && paragraph.length > 0) paragraph.push({ type: 'hardBreak' })
      // An empty text is no valid node.
      if (line !== '') paragraph.push({ type: 'text', text: line, ...toMarks(formats) })
    })
  }
  endParagraph()
  return { type: 'doc', version: 1, content }
}

/** The text between all borders of formats. */
const splitPieces = (markdown: string): Piece[] => {
  const { text, entities } = telegramText(markdown)
  const borders = new Set([0, text.length])
  for (const { offset, length } of entities) borders.add(offset).add(offset + length)
  const sorted = [...borders].sort((a, b) => a - b)
  return sorted.slice(0, -1).map((start, index) => ({
    text: text.slice(start, sorted[index + 1]),
    formats: entities.filter(({ offset, length }) => offset <= start && start < offset + length),
  }))
}

const marks = { bold: 'strong', italic: 'em', strikethrough: 'strike' } as const

/** Code takes no other mark than a link. */
const toMarks = (formats: readonly TelegramEntity[]): Pick<AdfNode, 'marks'> => {
  const isCode = formats.some(({ type }) => type === 'code')
  const found = formats.flatMap(({ type, url = '' }) => {
    if (type === 'text_link') return { type: 'link', attrs: { href: url } }
    if (type === 'code') return { type }
    return type === 'pre' || isCode ? [] : { type: marks[type] }
  })
  const unique = [...new Map(found.map((mark) => [mark.type, mark])).values()]
  return unique.length === 0 ? {} : { marks: unique }
}
