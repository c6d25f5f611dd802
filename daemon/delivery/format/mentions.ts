import { toPlainText } from '../../../shared/text.ts'
import { zeroWidthSpace } from './links.ts'

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

/** Text of GitHub without mentions of people and references to other issues. */
export const breakMentions = (text: string): string =>
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

/** The part of an address before this offset. */
const getWordBefore = (text: string, offset: number): string =>
  /[^\s<>()\]"'*|]*$/.exec(text.slice(Math.max(0, offset - maxLinkLength), offset))?.[0] ?? ''

/** As in `https://example.com/@scope/name`. */
const isInUrlPath = (text: string, offset: number): boolean =>
  text[offset - 1] === '/' && link.test(getWordBefore(text, offset))

/** The number sign of an entity, or of the fragment of a URL. */
const isEntityOrUrl = (text: string, offset: number): boolean =>
  /^&#\d{1,7};/.test(text.slice(Math.max(0, offset - 1), offset + 9)) ||
  link.test(getWordBefore(text, offset))

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
