import { type Flavour, type Prose, readProse, toLabel } from './markdown-blocks.ts'
import { isNamedAt } from './name.ts'

/*
 * Whether a text of Markdown names somebody: in its prose, and not within code, quotes, links, addresses, HTML
 * attributes or comments. GitHub and GitLab look for names in the same places, but for quotes.
 */

/** `name` is in lower case, without the at sign. The time is linear in the length of the text. */
export const namesInMarkdown = (markdown: string, name: string, flavour: Flavour): boolean => {
  // Most texts end here.
  if (!markdown.toLowerCase().includes(`@${name}`)) return false
  const { paragraphs, labels } = readProse(markdown, flavour)
  const quote: Quote = { depth: 0 }
  return paragraphs.some((text) => namesInParagraph(text, name, labels, quote))
}

/** Open `<blockquote>` elements, which go on over paragraphs. */
type Quote = { depth: number }

/** Elements whose text is code, or a link. */
const silent = new Set(['a', 'code', 'kbd', 'pre', 'samp', 'script', 'style', 'textarea', 'tt'])

const escaped = /\\[!-/:-@[-`{-~]/y
const address = /(?:https?:\/\/|www\.)[^\s<]*/iy
const autolink = /<[a-z][a-z0-9+.-]{1,31}:[^\s<>]*>/iy
const tag = /<(\/?)([a-z][a-z0-9-]*)(?:[^<>"']|"[^"]*"|'[^']*')*>/iy
const ticks = /`+/y
const destination =
  /\([ \t\n]*(?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)(?:[ \t\n]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t\n]*\)/y
const reference = /\[[^[\]]{0,999}\]/y

const namesInParagraph = (
  text: string,
  name: string,
  labels: Prose['labels'],
  quote: Quote,
): boolean => {
  const findClosing = indexRuns(text)
  const found: number[] = []
  const brackets: number[] = []
  let lastBracket = -1
  let lastComment: number | undefined
  let silence: string | undefined
  let place = 0
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = place
    return pattern.exec(text)
  }
  while (place < text.length) {
    const character = text[place]
    let length = 1
    if (character === '<') {
      if (text.startsWith('<!--', place)) {
        // Looked for once: without an end it is text.
        const end = lastComment === -1 ? -1 : text.indexOf('-->', place + 2)
        lastComment = end
        if (end !== -1) length = end + '-->'.length - place
      } else {
        const [link] = (silence === undefined && take(autolink)) || []
        const [whole = '<', slash, element = ''] = (link === undefined && take(tag)) || []
        length = (link ?? whole).length
        const kind = element.toLowerCase()
        if (silence !== undefined) {
          if (slash === '/' && kind === silence) silence = undefined
        } else if (kind === 'blockquote')
          quote.depth = Math.max(0, quote.depth + (slash === '/' ? -1 : 1))
        else if (slash === '' && silent.has(kind) && !whole.endsWith('/>')) silence = kind
      }
    } else if (silence !== undefined) {
      // Only its end counts.
    } else if (character === '\\') length = take(escaped)?.[0].length ?? 1
    else if (character === '`') {
      const run = take(ticks)?.[0].length ?? 1
      length = (findClosing(run, place) ?? place) + run - place
    } else if (character === '[') {
      brackets.push(place)
      lastBracket = place
    } else if (character === ']') {
      const start = brackets.pop()
      // A name of a link has no brackets.
      const label = start === lastBracket ? text.slice(start + 1, place) : ''
      lastBracket = place
      if (start !== undefined) {
        place += 1
        const [link] = take(destination) ?? take(reference) ?? []
        const isDefined = [label, link?.slice(1, -1) ?? ''].some((one) => labels.has(toLabel(one)))
        const isLink = link?.startsWith('(') === true || isDefined
        if (isLink) while ((found.at(-1) ?? -1) > start) found.pop()
        length = isLink ? (link?.length ?? 0) : 0
      }
    } else if (character === '@') {
      if (quote.depth === 0 && isNamedAt(text, place, name)) found.push(place)
    } else if (startsAddress(text, place)) length = take(address)?.[0].length ?? 1
    place += length
  }
  return found.length > 0
}

/** `h` or `w` that begins a word. */
const startsAddress = (text: string, place: number): boolean =>
  /[hw]/i.test(text[place] ?? '') && !/[\p{L}\p{N}]/u.test(text[place - 1] ?? '')

/** Finds the next run of exactly so many backticks, which ends code. Places only grow, so each is passed once. */
const indexRuns = (text: string) => {
  const runs = new Map<number, number[]>()
  for (const { 0: run, index } of [...text.matchAll(/`+/g)].toReversed()) {
    const places = runs.get(run.length)
    if (places) places.push(index)
    else runs.set(run.length, [index])
  }
  return (length: number, after: number): number | undefined => {
    const places = runs.get(length) ?? []
    while ((places.at(-1) ?? after + 1) <= after) places.pop()
    return places.at(-1)
  }
}
