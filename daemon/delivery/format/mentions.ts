import { toPlainText } from '../../../shared/text.ts'

/** Breaks a name apart without being seen. */
export const zeroWidthSpace = '\u200b'

/** For URLs (RFC 3986 section 2.1), which a zero width space would change. */
const escapedAt = '%40'

/*
 * GitHub searches the rendered Markdown for names, so an entity counts as its character. There is no mention
 * after a letter or digit (a mail address, `checkout@v4`), unless those end an entity.
 */
const at = /@(?=[A-Za-z0-9&])(?:(?<![A-Za-z0-9]@)|(?<=&#?[A-Za-z0-9]*@))/g
const atEntity = /&(?:#0*64|#x0*40|commat);?/gi
const hash = /#(?=\d|&#)/g
const hashEntity = /&(?:#0*35|#x0*23|num);?(?=[\d&])/gi
const ghNumber = /\bGH-(?=\d)/gi

const breakMentions = (text: string): string =>
  text
    .replace(atEntity, `$&${zeroWidthSpace}`)
    .replace(at, (_, offset: number, whole: string) =>
      isInUrlPath(whole, offset) ? escapedAt : `@${zeroWidthSpace}`,
    )
    .replace(hashEntity, `$&${zeroWidthSpace}`)
    .replace(hash, (found, offset: number, whole: string) =>
      isEntityOrUrl(whole, offset) ? found : found + zeroWidthSpace,
    )
    .replace(ghNumber, `$&${zeroWidthSpace}`)

const link = /(?:^|[^A-Za-z0-9])https?:\/\/[\w-]+(?:\.[\w-]+)+/i
const maxLinkLength = 300

/** The text without spaces before this offset. */
const getWordBefore = (text: string, offset: number): string =>
  /[^\s<>]*$/.exec(text.slice(Math.max(0, offset - maxLinkLength), offset))?.[0] ?? ''

/** As in `https://example.com/@scope/name`. */
const isInUrlPath = (text: string, offset: number): boolean =>
  text[offset - 1] === '/' && link.test(getWordBefore(text, offset))

/** The number sign of an entity, or of the fragment of a URL. */
const isEntityOrUrl = (text: string, offset: number): boolean =>
  /^&#\d{1,7};/.test(text.slice(Math.max(0, offset - 1), offset + 9)) ||
  link.test(getWordBefore(text, offset))

/**
 * GitHub's Markdown without mentions of people and references to other issues. Code is unchanged where GitHub
 * certainly treats it as code; where that is uncertain (a fence in a list, after HTML) it is treated as
 * text. A suggestion moves out of its list, and becomes plain code where its place is uncertain: what can be
 * applied is unchanged.
 */
export const githubText = (markdown: string): string => {
  const lines = markdown.split('\n')
  const state: State = {
    fence: undefined,
    mayBeHtml: false,
    isFenceUnsure: false,
    isHtml: false,
    isComment: false,
    isInlineUnsure: false,
  }
  return lines.map((line) => breakLine(line, state)).join('\n')
}

/** Suggestions as plain code, which no one can apply. */
export const withoutSuggestions = (markdown: string): string =>
  markdown.replaceAll(/^([ \t>*+.)\d-]*(?:`{3,}|~{3,})[ \t]*)suggestion\b[^\n`]*/gim, '$1')

type State = {
  fence: { readonly mark: string; readonly indent: number } | undefined
  /** A block of HTML that a blank line ends (CommonMark section 4.6, types 6 and 7). */
  mayBeHtml: boolean
  /** After an uncertain fence, no fence is trusted. */
  isFenceUnsure: boolean
  /** After HTML that no blank line ends (types 1 and 3 to 5), nothing is trusted. */
  isHtml: boolean
  /** Inside an HTML comment (type 2) nothing is trusted. */
  isComment: boolean
  /** Code may continue from an earlier line of this paragraph. */
  isInlineUnsure: boolean
}

const openingFence = /^(`{3,}(?=[^`]*$)|~{3,})/
// Also as the first thing of an item of a list.
const suggestionFence =
  /^(?:[ \t]|[*+-][ \t]|\d{1,9}[.)][ \t])*(?=(`{3,}|~{3,})[ \t]*suggestion[ \t]*$)/i
const anyFence = /^[\s>*+.)\d-]*(?:`{3,}|~{3,})/
const htmlStart = /^[\s>*+.)\d-]*<[A-Za-z/!?]/
const lastingHtml = /^[\s>*+.)\d-]*<(?:script|pre|style|textarea|!(?!--)|\?)/i
const commentStart = /^[\s>*+.)\d-]*<!--/

const breakLine = (line: string, state: State): string => {
  if (state.fence) return continueFence(line, state, state.fence)
  const isOutside = !state.isFenceUnsure && !state.isHtml && !state.isComment
  const opening = isOutside ? (suggestionFence.exec(line) ?? openingFence.exec(line)) : null
  if (opening) {
    const [{ length: indent }, mark = ''] = suggestionFence.exec(line) ?? ['', opening[1]]
    // A blank line ends HTML, and a fence without indentation ends all lists.
    const before = state.mayBeHtml || indent > 0 ? '\n' : ''
    state.fence = { mark, indent }
    state.mayBeHtml = false
    state.isInlineUnsure = false
    return before + breakMentions(line.slice(indent))
  }
  if (/^[ \t]*$/.test(line)) {
    state.mayBeHtml = false
    state.isInlineUnsure = false
    return line
  }
  state.isFenceUnsure ||= anyFence.test(line)
  state.isHtml ||= lastingHtml.test(line)
  state.isComment = staysInComment(line, state.isComment)
  state.mayBeHtml ||= htmlStart.test(line)
  return breakInline(withoutSuggestions(line), state)
}

const continueFence = (
  line: string,
  state: State,
  { mark, indent }: NonNullable<State['fence']>,
): string => {
  const [{ length: spaces }] = /^[ \t]*/.exec(line) ?? ['']
  const code = line.slice(Math.min(indent, spaces))
  const closing = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(code)?.[1]
  if (closing && closing[0] === mark[0] && closing.length >= mark.length) state.fence = undefined
  return code
}

const staysInComment = (line: string, isComment: boolean): boolean => {
  if (isComment) return !line.includes('-->')
  const [start] = commentStart.exec(line) ?? []
  return start !== undefined && !line.includes('-->', start.length)
}

// HTML, escapes, tables, mathematics, longer runs of backticks and bare links may use up a backtick that
// seems to open code.
const ambiguousTicks = /[<\\|$]|``|:\/\/|www\./i

/** Code between single backticks of one line is unchanged when no other reading is possible. */
const breakInline = (line: string, state: State): string => {
  const pieces = line.split('`')
  const isSure =
    pieces.length % 2 === 1 &&
    !ambiguousTicks.test(line) &&
    !state.mayBeHtml &&
    !state.isHtml &&
    !state.isComment &&
    !state.isInlineUnsure
  if (isSure)
    return pieces.map((piece, index) => (index % 2 === 0 ? breakMentions(piece) : piece)).join('`')
  // A backtick may open code that ends in a later line.
  state.isInlineUnsure ||= pieces.length > 1
  return breakMentions(line)
}

// A merge request of GitLab, and a user whose name begins with a line.
const gitlabMark = /(!|&#0*33;?|&#x0*21;?|&excl;?)(?=\d)|(?<![A-Za-z0-9])@(?=_)/gi
// GitLab runs a line such as `/merge` as a command of the token's owner. It ignores carriage returns.
const quickAction = /^([^\S\n]*)\/(?=[\w-]+(?:\s|$))/gm

/**
 * GitLab's Markdown without mentions, references to other issues and merge requests, and quick actions. Also
 * in code, as what GitLab reads as code differs by version.
 */
export const gitlabText = (markdown: string): string =>
  githubText(markdown)
    .replace(gitlabMark, `$&${zeroWidthSpace}`)
    .replace(quickAction, `$1${zeroWidthSpace}/`)

// Linear makes a mention of the address of a person's page, also in code (linear.app/developers/agent-interaction).
const linearPerson = /(linear\.app\/[\w-]+\/)(?=profiles\/)/gi

/** Linear's Markdown without mentions of people. */
export const linearText = (markdown: string): string =>
  githubText(markdown).replace(linearPerson, `$1${zeroWidthSpace}`)

// A mention of Slack: its opening bracket may be an entity, and a backslash may follow. HTML comments and
// document types are not mentions.
const mention =
  /(<|&lt;?|&#0*60;?|&#x0*3c;?)(?=\\?(?:!(?!--|doctype\b)|@|#[CG]|&(?:#|excl|commat|num|quest)))/gi
// Some workspaces link these words without brackets.
const broadcast = /(@|&commat;|&#0*64;?|&#x0*40;?)(?=(?:channel|here|everyone|group)\b)/gi

/**
 * Markdown for `markdown_text` that notifies no one: `<!channel>`, `<!here>`, `<@U…>` and groups are shown
 * as text (docs.slack.dev, "Formatting message text", special mentions). Also in code, where Slack links
 * them too.
 */
export const slackText = (markdown: string): string =>
  markdown.replace(mention, `$1${zeroWidthSpace}`).replace(broadcast, `$1${zeroWidthSpace}`)

/** For any chat: as for Slack, and without `@name`, which notifies in Mattermost; mail addresses stay. */
export const chatText = (text: string): string =>
  slackText(toPlainText(text)).replaceAll(/(?<![\w.+-])@(?=\w)/g, `@${zeroWidthSpace}`)
