import { gap } from './gap.ts'

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
  markdown.replace(mention, `$1${gap}`).replace(broadcast, `$1${gap}`)
