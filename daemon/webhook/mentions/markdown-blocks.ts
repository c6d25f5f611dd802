/*
 * The parts of Markdown in which a person speaks: paragraphs, lists, headings and tables. Code, quotes, HTML comments
 * and definitions of links are left out (CommonMark 0.31, chapters 4 and 5).
 */

/** What may be said, in paragraphs; `labels` has the names of links that the text defines, in lower case. */
export type Prose = { readonly paragraphs: readonly string[]; readonly labels: ReadonlySet<string> }

export type Flavour = 'github' | 'gitlab'

type Fence = { readonly mark: string; readonly offset: number }

type State = {
  fence: Fence | undefined
  /** The end of a block of HTML in which nothing is said. */
  hiddenUntil: RegExp | undefined
  /** A quote of several lines, as GitLab has it between lines of `>>>`. */
  isQuoted: boolean
  isParagraph: boolean
  /** The columns at which the text of the open items of lists begins. */
  items: number[]
}

/** One pass over the lines, each of which is looked at once. */
export const readProse = (markdown: string, flavour: Flavour): Prose => {
  const state: State = {
    fence: undefined,
    hiddenUntil: undefined,
    isQuoted: false,
    isParagraph: false,
    items: [],
  }
  const labels = new Set<string>()
  const paragraphs: string[] = []
  let lines: string[] = []
  const end = () => {
    if (lines.length > 0) paragraphs.push(lines.join('\n'))
    lines = []
  }
  for (const line of markdown.split(/\r\n?|\n/)) {
    const said = readLine(line, state, flavour)
    const label = said !== undefined && !state.isParagraph ? definition.exec(said)?.[1] : undefined
    if (label !== undefined) labels.add(toLabel(label))
    const isSaid = said !== undefined && label === undefined
    if (!isSaid || !state.isParagraph) end()
    if (isSaid) lines.push(said)
    state.isParagraph = isSaid && !heading.test(said)
    if (!state.isParagraph) end()
  }
  end()
  return { paragraphs, labels }
}

/** Names of links are the same in capitals, and with other spaces. */
export const toLabel = (text: string): string => text.trim().replaceAll(/\s+/g, ' ').toLowerCase()

const definition = /^\[(?!\^)([^[\]]{1,999})\]:\s*\S/
const heading = /^#{1,6}(?:\s|$)/
const itemMark = /^(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)/
const openingFence = /^(?:`{3,}(?=[^`]*$)|~{3,})/
/** Blocks of HTML that end with a text of their own; no line of another kind ends them. */
const hiddenHtml = /^<(pre|script|style|textarea)(?=[\s>]|$)/i

/** The text of a line without the marks before it; undefined where nothing is said. */
const readLine = (line: string, state: State, flavour: Flavour): string | undefined => {
  if (state.hiddenUntil) return continueHidden(line, state, state.hiddenUntil)
  if (/^[ \t]*$/.test(line)) {
    state.isParagraph = false
    return undefined
  }
  let { column, rest } = indentOf(line, 0)
  if (state.fence) {
    // It ends with the item of a list that it is in.
    if (column >= state.fence.offset) return continueFence(rest, column, state, state.fence)
    state.fence = undefined
  }
  if (flavour === 'gitlab' && /^>>>[ \t]*$/.test(line)) {
    state.isQuoted = !state.isQuoted
    return undefined
  }
  if (state.isQuoted) return undefined

  while (column < (state.items.at(-1) ?? 0)) state.items.pop()
  for (;;) {
    const offset = state.items.at(-1) ?? 0
    // Within a paragraph the spaces mean nothing.
    if (column - offset >= 4 && !state.isParagraph) return undefined
    const [mark] = (column - offset < 4 && itemMark.exec(rest)) || []
    if (mark === undefined) break
    const next = indentOf(rest.slice(mark.length), column + mark.length)
    if (next.rest === '') return undefined
    const spaces = next.column - column - mark.length
    state.items.push(column + mark.length + (spaces > 4 ? 1 : spaces))
    state.isParagraph = false
    ;({ column, rest } = next)
  }
  const [mark] = openingFence.exec(rest) ?? []
  if (mark !== undefined) {
    state.fence = { mark, offset: state.items.at(-1) ?? 0 }
    return undefined
  }
  if (rest.startsWith('>')) return undefined
  return startHidden(rest, state)
}

/** The column of the first character, with tabs to the next multiple of four, and the text from there. */
const indentOf = (line: string, from: number): { column: number; rest: string } => {
  let column = from
  let place = 0
  for (; line[place] === ' ' || line[place] === '\t'; place += 1)
    column += line[place] === '\t' ? 4 - (column % 4) : 1
  return { column, rest: line.slice(place) }
}

const continueFence = (
  rest: string,
  column: number,
  state: State,
  { mark, offset }: Fence,
): undefined => {
  const [closing] = /^(?:`{3,}|~{3,})(?=[ \t]*$)/.exec(rest) ?? []
  const closes = closing !== undefined && closing.length >= mark.length && closing[0] === mark[0]
  if (closes && column - offset < 4) state.fence = undefined
}

/** A block of HTML may begin here whose text nobody says. */
const startHidden = (rest: string, state: State): string | undefined => {
  if (rest.startsWith('<!--')) return continueHidden(rest.slice('<!--'.length), state, /-->/)
  const [mark] = hiddenHtml.exec(rest) ?? []
  if (mark === undefined) return rest
  return continueHidden(rest.slice(mark.length), state, htmlEnd)
}

const htmlEnd = /<\/(?:pre|script|style|textarea)\s*>/i

/** What stands behind the end is said. */
const continueHidden = (text: string, state: State, end: RegExp): string | undefined => {
  const found = end.exec(text)
  state.hiddenUntil = found ? undefined : end
  if (!found) return undefined
  const rest = text.slice(found.index + found[0].length).trim()
  return rest === '' ? undefined : startHidden(rest, state)
}
