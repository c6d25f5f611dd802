/*
 * Finds the code of GitHub's Markdown (github.github.com/gfm). Code counts only where every reading agrees that it is
 * code; all else is text. The caller makes HTML harmless in text, so no tag can swallow a backtick or a fence: only
 * blocks of the tags that the caller keeps can.
 */

type Conversions = {
  /** Removes what no reader sees from a line. */
  readonly clean: (line: string) => string
  /** Text outside of code. `isSure` is false where it may be code nevertheless. */
  readonly text: (text: string, isSure: boolean) => string
  /** A line of a block of code. */
  readonly code: (line: string) => string
  /** Matches a line that begins a block of the HTML that `text` keeps. */
  readonly htmlStart: RegExp
}

type State = {
  readonly conversions: Conversions
  /** A block of HTML, which a blank line ends (CommonMark section 4.6, types 6 and 7). */
  mayBeHtml: boolean
  /** After an uncertain fence, no fence is trusted. */
  isFenceUnsure: boolean
  /** Code may continue from an earlier line of this paragraph. */
  isInlineUnsure: boolean
}

/**
 * Converts text and code. A suggestion moves out of its list, and becomes plain code where its place is uncertain or
 * a line of it has to change: what can be applied is unchanged.
 */
export const mapMarkdown = (markdown: string, conversions: Conversions): string => {
  const given = markdown.split('\n')
  const lines = given.map(conversions.clean)
  const state: State = {
    conversions,
    mayBeHtml: false,
    isFenceUnsure: false,
    isInlineUnsure: false,
  }
  const converted: string[] = []
  for (let at = 0; at < lines.length;) {
    const block = findBlock(lines, at, state)
    if (block) {
      converted.push(...convertBlock(given, lines, block, state))
      at = block.end
      continue
    }
    converted.push(convertLine(lines[at] ?? '', state))
    at += 1
  }
  return converted.join('\n')
}

/** A fenced block of code. */
type Block = {
  readonly start: number
  /** The line after it. */
  readonly end: number
  /** How far it is indented, with the mark of a list. */
  readonly indent: number
  /** Undefined for a block that stays in its list. */
  readonly isMoved: boolean
}

// Also as the first thing of an item of a list.
const fence = /^((?: |[*+-] |\d{1,9}[.)] )*)(`{3,}(?=[^`]*$)|~{3,})(.*)$/
const suggestion = /^[ \t]*suggestion[ \t]*$/i

const findBlock = (lines: readonly string[], start: number, state: State): Block | undefined => {
  const [, prefix = '', mark = '', info = ''] = fence.exec(lines[start] ?? '') ?? []
  if (mark === '' || state.isFenceUnsure) return undefined
  const indent = prefix.length
  const isMoved = suggestion.test(info)
  const isTop = indent === 0
  if (!isTop && !isMoved && (state.mayBeHtml || state.isInlineUnsure)) return undefined
  // Four spaces begin no block in a paragraph: there the marks have to be a pair of code in a line.
  const isPair = isMoved || indent < 4 || mark.startsWith('`')
  for (let at = start + 1; at < lines.length; at += 1) {
    const line = lines[at] ?? ''
    const [spaces = ''] = /^ */.exec(line) ?? []
    const inner = line.slice(Math.min(indent, spaces.length))
    const closing = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(inner)?.[1]
    const isDeep = isTop || spaces.length >= indent
    if (closing && closing[0] === mark[0] && closing.length >= mark.length && (isDeep || isMoved))
      return isPair ? { start, end: at + 1, indent, isMoved } : undefined
    if (isTop || isMoved) continue
    if ((!isDeep && line.trim() !== '') || (indent >= 4 && inner.includes('```'))) return undefined
  }
  return isTop || isMoved ? { start, end: lines.length, indent, isMoved } : undefined
}

const convertBlock = (
  given: readonly string[],
  lines: readonly string[],
  { start, end, indent, isMoved }: Block,
  state: State,
): string[] => {
  const { code } = state.conversions
  // A blank line ends HTML, and a fence without indentation ends all lists.
  const before = state.mayBeHtml || (isMoved && indent > 0) ? [''] : []
  state.mayBeHtml = false
  state.isInlineUnsure = false
  const inner = lines.slice(start + 1, end)
  const converted = inner.map(code)
  const isUnchanged = converted.every((line, index) => line === given[start + 1 + index])
  const opening = lines[start] ?? ''
  if (!isMoved) return [...before, toPlainFence(opening), ...converted]
  const moved = (line: string) => line.slice(Math.min(indent, (/^ */.exec(line) ?? [''])[0].length))
  const first = opening.slice(indent)
  return [...before, isUnchanged ? first : withoutSuggestions(first), ...converted.map(moved)]
}

const convertLine = (line: string, state: State): string => {
  const { text, htmlStart } = state.conversions
  if (/^[ \t]*$/.test(line)) {
    state.mayBeHtml = false
    state.isInlineUnsure = false
    return line
  }
  const isFence = /^[\s>*+.)\d-]*(?:`{3,}[^`]*$|~{3,})/.test(line)
  state.isFenceUnsure ||= isFence
  state.mayBeHtml ||= htmlStart.test(line)
  const isSure = !state.isFenceUnsure && !state.mayBeHtml && !state.isInlineUnsure
  const pieces = isSure ? splitCode(line) : undefined
  if (pieces) {
    const converted = pieces
      .map((piece, index) => (index % 2 === 0 ? text(piece, !/^(?: {4}|\t)/.test(line)) : piece))
      .join('')
    // The rest of the line may begin HTML.
    return htmlStart.test(converted) ? text(line, false) : converted
  }
  // A backtick may open code that ends in a later line.
  state.isInlineUnsure ||= line.includes('`')
  const shown = isFence ? toPlainFence(withoutSuggestions(line)) : line
  return text(shown, isSure && !line.includes('`'))
}

/** Text and code in turn; undefined where another reading is possible. A bar may end a cell of a table. */
const splitCode = (line: string): string[] | undefined => {
  const pieces = ['']
  for (const [index, cell] of line.split('|').entries()) {
    if (index > 0) pieces.push(`${pieces.pop()}|`)
    const runs = [...cell.matchAll(/`+/g)]
    let end = 0
    for (let at = 0; at < runs.length;) {
      const open = runs[at]?.index ?? 0
      const length = runs[at]?.[0].length ?? 0
      let close = at + 1
      while (close < runs.length && runs[close]?.[0].length !== length) close += 1
      const before = `${pieces.pop()}${cell.slice(end, open)}`
      // An escape, mathematics and an address may swallow a backtick.
      const word = before.slice(Math.max(before.lastIndexOf(' '), before.lastIndexOf('\t')) + 1)
      if (close === runs.length || /[\\$]/.test(before) || /\/\/|www\./i.test(word))
        return undefined
      const after = (runs[close]?.index ?? 0) + length
      pieces.push(before, cell.slice(open, after), '')
      end = after
      at = close + 1
    }
    if (runs.length > 0 && cell.slice(end).includes('$')) return undefined
    pieces.push(`${pieces.pop()}${cell.slice(end)}`)
  }
  return pieces
}

/** Suggestions as plain code, which no one can apply. */
export const withoutSuggestions = (markdown: string): string =>
  markdown.replaceAll(/^([ \t>*+.)\d-]*(?:`{3,}|~{3,})[ \t]*)suggestion\b[^\n`]*/gim, '$1')

/*
 * Blocks that GitHub and GitLab draw, with links and images of their own
 * (docs.github.com/get-started/writing-on-github, "Creating diagrams" and "Writing mathematical expressions";
 * docs.gitlab.com/user/markdown; docs.gitlab.com/administration/integration/kroki).
 */
const drawn =
  /^(?:mermaid|geojson|topojson|stl|math|json:table|(?:c4)?plantuml|puml|uml|act|block|seq|nw|packet|rack)(?:diag)?$|^(?:bpmn|bytefield|d2|dbml|diagramsnet|ditaa|dot|erd|excalidraw|graphviz|nomnoml|pikchr|structurizr|svgbob|symbolator|tikz|umlet|vega|vegalite|wavedrom|wireviz)$/i

/** The line that opens a block: its language alone, or `text` for one that is drawn. */
const toPlainFence = (line: string): string => {
  const [, head = '', language = ''] = /^(.*?(?:`{3,}|~{3,}))[ \t]*([\w+#.:/-]*)/.exec(line) ?? []
  return `${head}${drawn.test(language) ? 'text' : language}`
}
