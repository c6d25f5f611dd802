/** The sign in an address (RFC 3986 section 2.1): a gap would make it another one. */
const escapedAt = '%40'

/*
 * GitHub looks for names in the text that Markdown makes, so an entity for a character counts as that
 * character. After a letter or digit there is no mention (a mail address, `checkout@v4`), unless those end
 * an entity.
 */
const at = /@(?=[A-Za-z0-9&])(?:(?<![A-Za-z0-9]@)|(?<=&#?[A-Za-z0-9]*@))/g
const atEntity = /&(?:#0*64|#x0*40|commat);?/gi
const hash = /#(?=\d|&#)/g
const hashEntity = /&(?:#0*35|#x0*23|num);?(?=[\d&])/gi
const ghNumber = /\bGH-(?=\d)/gi

const quiet = (text: string): string =>
  text
    .replace(atEntity, `$&${zeroWidthSpace}`)
    .replace(at, (_, offset: number, whole: string) =>
      isInAddress(whole, offset) ? escapedAt : `@${zeroWidthSpace}`,
    )
    .replace(hashEntity, `$&${zeroWidthSpace}`)
    .replace(hash, (found, offset: number, whole: string) =>
      isNoReference(whole, offset) ? found : found + zeroWidthSpace,
    )
    .replace(ghNumber, `$&${zeroWidthSpace}`)

const link = /(?:^|[^A-Za-z0-9])https?:\/\/[\w-]+(?:\.[\w-]+)+/i
const longestLink = 300

/** What has no space before this place. */
const wordBefore = (text: string, offset: number): string =>
  /[^\s<>]*$/.exec(text.slice(Math.max(0, offset - longestLink), offset))?.[0] ?? ''

/** A step of a path that begins with the sign: `https://example.com/@scope/name`. */
const isInAddress = (text: string, offset: number): boolean =>
  text[offset - 1] === '/' && link.test(wordBefore(text, offset))

/** The number sign of an entity, or of a place in a page that is linked to. */
const isNoReference = (text: string, offset: number): boolean =>
  /^&#\d{1,7};/.test(text.slice(Math.max(0, offset - 1), offset + 9)) ||
  link.test(wordBefore(text, offset))

/**
 * GitHub's Markdown in which nobody is mentioned and no other issue referred to. Code stays as it is, where
 * it is certain that GitHub takes it for code; where that is in doubt (a fence in a list, behind HTML) it
 * is treated as text.
 */
export const githubText = (markdown: string): string => {
  const lines = markdown.split('\n')
  const state: State = {
    fence: undefined,
    mayBeHtml: false,
    isFenceUnsure: false,
    isHtml: false,
    isInlineUnsure: false,
  }
  return lines.map((line) => quietLine(line, state)).join('\n')
}

type State = {
  fence: string | undefined
  /** A block of HTML that a blank line ends (CommonMark section 4.6, types 6 and 7). */
  mayBeHtml: boolean
  /** No fence is trusted from here on, after one that may or may not be one. */
  isFenceUnsure: boolean
  /** HTML that no blank line ends (types 1 to 5): nothing is trusted from here on. */
  isHtml: boolean
  /** Code may go on from an earlier line of this paragraph. */
  isInlineUnsure: boolean
}

const openingFence = /^(`{3,}(?=[^`]*$)|~{3,})/
const anyFence = /^[\s>*+.)\d-]*(?:`{3,}|~{3,})/
const htmlStart = /^[\s>*+.)\d-]*<[A-Za-z/!?]/
const lastingHtml = /^[\s>*+.)\d-]*<(?:script|pre|style|textarea|!|\?)/i

const quietLine = (line: string, state: State): string => {
  if (state.fence !== undefined) {
    const closing = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1]
    if (closing && closing[0] === state.fence[0] && closing.length >= state.fence.length)
      state.fence = undefined
    return line
  }
  const opening = openingFence.exec(line)?.[1]
  if (opening !== undefined && !state.isFenceUnsure && !state.mayBeHtml && !state.isHtml) {
    state.fence = opening
    state.isInlineUnsure = false
    return quiet(line)
  }
  if (/^[ \t]*$/.test(line)) {
    state.mayBeHtml = false
    state.isInlineUnsure = false
    return line
  }
  state.isFenceUnsure ||= anyFence.test(line)
  state.isHtml ||= lastingHtml.test(line)
  state.mayBeHtml ||= htmlStart.test(line)
  return quietInline(line, state)
}

// What can take a backtick away from the code it seems to open: HTML, escapes, tables, mathematics,
// longer runs of backticks, bare links.
const takesTicks = /[<\\|$]|``|:\/\/|www\./i

/** Code between single backticks of one line stays as it is, when no other reading is possible. */
const quietInline = (line: string, state: State): string => {
  const pieces = line.split('`')
  const isSure =
    pieces.length % 2 === 1 &&
    !takesTicks.test(line) &&
    !state.mayBeHtml &&
    !state.isHtml &&
    !state.isInlineUnsure
  if (isSure)
    return pieces.map((piece, index) => (index % 2 === 0 ? quiet(piece) : piece)).join('`')
  // A backtick that is left over may open code that ends in a later line.
  state.isInlineUnsure ||= pieces.length > 1
  return quiet(line)
}

// What Slack takes for a mention, with its opening bracket as it is or as an entity of Markdown, and what
// follows perhaps behind the backslash of an escape. Comments and document types of HTML are none.
const mention =
  /(<|&lt;?|&#0*60;?|&#x0*3c;?)(?=\\?(?:!(?!--|doctype\b)|@|#[CG]|&(?:#|excl|commat|num|quest)))/gi
// Some workspaces link these words by themselves.
const broadcast = /(@|&commat;|&#0*64;?|&#x0*40;?)(?=(?:channel|here|everyone|group)\b)/gi

/**
 * Markdown for `markdown_text` in which nobody is called: `<!channel>`, `<!here>`, `<@U…>` and groups are
 * shown as they are written (docs.slack.dev, "Formatting message text", special mentions). In code too:
 * Slack looks for them everywhere.
 */
export const slackText = (markdown: string): string =>
  markdown.replace(mention, `$1${zeroWidthSpace}`).replace(broadcast, `$1${zeroWidthSpace}`)

/** Zero width space: breaks a name apart without being seen. */
export const zeroWidthSpace = '\u200b'
