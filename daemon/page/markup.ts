import { isSafeToOpen } from '../../shared/net.ts'
import { toPlainLine, toPlainText } from '../../shared/text.ts'
import { escapeHtml } from '../http/body.ts'

/* How the page writes HTML: text of senders and programs is escaped, and shows itself as what it is. */

/** Safe HTML. Only `markup` creates it. */
export type Markup = { readonly html: string }

export type Part = Markup | readonly Markup[] | string | number | undefined | false

/** A template of HTML that escapes its values, except those made by `markup`. */
export const markup = (texts: TemplateStringsArray, ...parts: readonly Part[]): Markup => ({
  html: texts.map((text, place) => `${text}${toHtml(parts[place])}`).join(''),
})

const toHtml = (part: Part): string => {
  if (part === undefined || part === false) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return 'html' in part ? part.html : part.map(({ html }) => html).join('')
}

/** Text of a sender or a program on one line, in its own direction, without what could hide or reverse other text. */
export const shownLine = (text: string): Markup => markup`<bdi>${toShownLine(text)}</bdi>`

/** A link to a page of the web, or the text alone where its address could lead to this machine. */
export const webLink = (text: string, url: string | undefined): Markup =>
  // Browsers open no file of this machine from here.
  url === undefined || !isSafeToOpen(url)
    ? shownLine(text)
    : markup`<a href="${url}" rel="noopener noreferrer" target="_blank">${shownLine(text)}</a>`

/** A text as the page shows it, and how much it leaves out. */
type ShownText = {
  readonly text: string
  /** In UTF-16 units. */
  readonly cut: number
  /** Removed control, escape and direction characters. */
  readonly hidden: number
}

const maxLength = 100_000
const maxLineLength = 300

/** The first 100,000 characters, without those that could reverse or hide others. */
export const toShownText = (whole: string): ShownText => {
  const first = whole.slice(0, maxLength).replace(loneSurrogate, '')
  const text = toPlainText(first)
  const hidden = first.replaceAll('\r\n', '\n').length - text.length
  return { text, cut: whole.length - first.length, hidden }
}

/** Text of a sender or a program on one line, cut at 300 characters. */
export const toShownLine = (whole: string): string => {
  const line = toPlainLine(whole.slice(0, maxLineLength * 2))
  return line.length > maxLineLength
    ? `${line.slice(0, maxLineLength).replace(loneSurrogate, '')}…`
    : line
}

const loneSurrogate = /[\ud800-\udbff]$/
