import { toPageUrl } from '../../shared/net.ts'
import { type Markup, markup, shownLine, toShownLine } from './markup.ts'

/*
 * The Markdown of agents as HTML of the page: paragraphs, headings, lists, quotes, tables, code, bold and italic. HTML
 * in it stays text, an image is its description, and a link always shows where it leads. Each line is looked at a few
 * times at most, whatever a hostile text is made of.
 */

/** Lists and quotes inside each other; deeper ones are text. */
const maxDepth = 6

export const renderMarkdown = (text: string): Markup =>
  markup`<div class="prose" dir="auto">${renderBlocks(text.split('\n'), 0)}</div>`

const patterns = {
  fence: /^ {0,3}(`{3,}|~{3,})/,
  heading: /^ {0,3}(#{1,6}) +(.*)$/,
  rule: /^ {0,3}(?:-{3,}|\*{3,}|_{3,})$/,
  item: /^( *)([-*+]|\d{1,9}[.)])( +|$)/,
  quote: /^ {0,3}> ?/,
  tableRule: /^ *\|?(?: *:?-+:? *\|)+(?: *:?-+:? *)?$/,
} as const

const isBlank = (line: string): boolean => line.trim() === ''

/** Each reader takes the lines of one block. */
type Block = { readonly html: Markup; readonly end: number }

const renderBlocks = (lines: readonly string[], depth: number): Markup[] => {
  const blocks: Markup[] = []
  let at = 0
  while (at < lines.length) {
    if (isBlank(lines[at] ?? '')) {
      at += 1
      continue
    }
    const { html, end } = readBlock(lines, at, depth)
    blocks.push(html)
    at = end
  }
  return blocks
}

const readBlock = (lines: readonly string[], at: number, depth: number): Block => {
  const line = lines[at] ?? ''
  const [, fence] = patterns.fence.exec(line) ?? []
  if (fence !== undefined) return readCode(lines, at, fence)
  const heading = patterns.heading.exec(line)
  if (heading) return { html: renderHeading(heading), end: at + 1 }
  if (patterns.rule.test(line)) return { html: markup`<hr>`, end: at + 1 }
  if (isTable(lines, at)) return readTable(lines, at)
  if (depth < maxDepth && patterns.quote.test(line)) return readQuote(lines, at, depth)
  if (depth < maxDepth && patterns.item.test(line)) return readList(lines, at, depth)
  return readParagraph(lines, at)
}

const readCode = (lines: readonly string[], at: number, fence: string): Block => {
  const [mark = '`'] = fence
  let end = at + 1
  while (end < lines.length && !isClosing(lines[end] ?? '', mark, fence.length)) end += 1
  // HTML drops the first line break in a `pre`.
  const html = markup`<pre>\n<code>${lines.slice(at + 1, end).join('\n')}</code></pre>`
  return { html, end: end + 1 }
}

const isClosing = (line: string, mark: string, length: number): boolean => {
  const text = line.trim()
  return text.length >= length && text === mark.repeat(text.length)
}

/** The view has the first two levels. */
const renderHeading = ([, marks = '', text = '']: RegExpExecArray): Markup => {
  const shown = renderInline(text.trimEnd().replace(/ #+$/, ''))
  return marks.length < 3 ? markup`<h3>${shown}</h3>` : markup`<h4>${shown}</h4>`
}

const readQuote = (lines: readonly string[], at: number, depth: number): Block => {
  let end = at
  while (end < lines.length && patterns.quote.test(lines[end] ?? '')) end += 1
  const inside = lines.slice(at, end).map((line) => line.replace(patterns.quote, ''))
  return { html: markup`<blockquote>${renderBlocks(inside, depth + 1)}</blockquote>`, end }
}

const readList = (lines: readonly string[], at: number, depth: number): Block => {
  const [, indent = '', mark = ''] = patterns.item.exec(lines[at] ?? '') ?? []
  const isOrdered = /\d/.test(mark)
  const items: string[][] = []
  let end = at
  for (; end < lines.length; end += 1) {
    const line = lines[end] ?? ''
    const [whole = '', itsIndent = '', itsMark = ''] = patterns.item.exec(line) ?? []
    const isItem = whole !== '' && itsIndent.length <= indent.length + 1
    if (isItem && /\d/.test(itsMark) !== isOrdered) break
    if (isItem) items.push([line.slice(whole.length)])
    else if (isBlank(line) ? !goesOn(lines, end, indent.length) : endsItem(lines, end)) break
    else
      items.at(-1)?.push(line.replace(new RegExp(`^ {0,${indent.length + mark.length + 1}}`), ''))
  }
  const shown = items.map((item) => markup`<li>${renderBlocks(item, depth + 1)}</li>`)
  const start = Number.parseInt(mark, 10)
  const html = isOrdered ? markup`<ol start="${start}">${shown}</ol>` : markup`<ul>${shown}</ul>`
  return { html, end }
}

/** Whether a list goes on after a blank line: with an item, or with a text that is indented. */
const goesOn = (lines: readonly string[], blank: number, indent: number): boolean => {
  const next = lines[blank + 1] ?? ''
  return (
    !isBlank(next) &&
    (patterns.item.test(next) || next.length - next.trimStart().length > indent + 1)
  )
}

/** A line that is neither indented nor a paragraph that goes on. */
const endsItem = (lines: readonly string[], at: number): boolean =>
  !/^ {2}/.test(lines[at] ?? '') && (isBlank(lines[at - 1] ?? '') || startsBlock(lines, at))

const startsBlock = (lines: readonly string[], at: number): boolean => {
  const line = lines[at] ?? ''
  const { fence, heading, rule, quote, item } = patterns
  return [fence, heading, rule, quote, item].some((one) => one.test(line)) || isTable(lines, at)
}

const readParagraph = (lines: readonly string[], at: number): Block => {
  let end = at + 1
  while (end < lines.length && !isBlank(lines[end] ?? '') && !startsBlock(lines, end)) end += 1
  const text = lines.slice(at, end).map((line) => line.trim())
  return { html: markup`<p class="lines">${renderInline(text.join('\n'))}</p>`, end }
}

const isTable = (lines: readonly string[], at: number): boolean =>
  (lines[at] ?? '').includes('|') && patterns.tableRule.test((lines[at + 1] ?? '').slice(0, 500))

const readTable = (lines: readonly string[], at: number): Block => {
  let end = at + 2
  while (end < lines.length && (lines[end] ?? '').includes('|')) end += 1
  const head = toCells(lines[at] ?? '').map(
    (cell) => markup`<th scope="col">${renderInline(cell)}</th>`,
  )
  const rows = lines.slice(at + 2, end).map((row) => {
    const cells = toCells(row).map((cell) => markup`<td>${renderInline(cell)}</td>`)
    return markup`<tr>${cells}</tr>`
  })
  const html = markup`<div class="table"><table><thead><tr>${head}</tr></thead><tbody>${rows}</tbody></table></div>`
  return { html, end }
}

const toCells = (row: string): string[] =>
  row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll(String.raw`\|`, '|'))

/** The lengths are bounded, so that a text of many unclosed marks costs no more than its length. */
const spans =
  /`([^`\n]+)`|!?\[([^[\]]{0,500})\]\(<?([^()\s<>]{1,2000})>?(?: +"[^"\n]{0,500}")?\)|<?(https:\/\/[^\s<>"'`|]{1,2000})>?|\*\*([^*\n]{1,2000})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,500})\*(?![\w*])|(?<!\w)_([^_\s][^_\n]{0,500})_(?!\w)|\\([^\w\s])/g

const renderInline = (text: string): Markup => {
  const parts: Markup[] = []
  let end = 0
  for (const match of text.matchAll(spans)) {
    parts.push(markup`${text.slice(end, match.index)}`, renderSpan(match))
    end = match.index + match[0].length
  }
  return markup`${parts}${text.slice(end)}`
}

const renderSpan = (match: RegExpExecArray): Markup => {
  const [whole, code, linked, to, address, bold, italic, underlined, escaped] = match
  if (code !== undefined) return markup`<code>${code}</code>`
  if (to !== undefined) {
    const name = linked ?? ''
    return name === to || name === ''
      ? renderAddress(to)
      : markup`${renderInline(name)} (${renderAddress(to)})`
  }
  if (address !== undefined) return renderBareAddress(whole, address)
  if (bold !== undefined) return markup`<strong>${renderInline(bold)}</strong>`
  const emphasis = italic ?? underlined
  if (emphasis !== undefined) return markup`<em>${renderInline(emphasis)}</em>`
  return markup`${escaped}`
}

/** The end of a sentence is no part of its last address. */
const renderBareAddress = (whole: string, address: string): Markup => {
  if (whole.startsWith('<')) return renderAddress(address)
  const short = address.replace(/[.,;:!?)\]*_]{1,20}$/, '')
  return markup`${renderAddress(short)}${address.slice(short.length)}`
}

/** A page of the web leads there, and shows the address that a browser takes it for; any other address is text. */
const renderAddress = (address: string): Markup => {
  const url = toPageUrl(address)
  return url === undefined
    ? shownLine(address)
    : markup`<a href="${url}" rel="noopener noreferrer" target="_blank">${toShownLine(url)}</a>`
}
