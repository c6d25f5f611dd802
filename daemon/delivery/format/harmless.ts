import { toPlainText } from '../../../shared/text.ts'
import { breakCodeCommand, breakCommands } from './commands.ts'
import { breakLinks, htmlStart, type LinkHosts, zeroWidthSpace } from './links.ts'
import { mapMarkdown } from './markdown-code.ts'
import { breakMentions } from './mentions.ts'

/*
 * Text of an agent for a place that obeys text. What it says stays; what the place, or a bot there, would act on is
 * broken apart by a space that no one sees. Doorward's own marks are added behind it.
 */

const noHosts: LinkHosts = {}

/**
 * GitHub's Markdown without mentions, references to other issues, commands, words that close, HTML, and links or images
 * of other hosts. What is certainly code stays code, without what no one sees.
 */
export const githubText = (markdown: string, hosts: LinkHosts = noHosts): string =>
  mapMarkdown(markdown, {
    clean: toVisibleLine,
    text: (text, isSure) => breakText(isSure ? withoutComments(text) : text, hosts),
    code: breakCodeCommand,
    htmlStart,
  })

const breakText = (text: string, hosts: LinkHosts): string =>
  breakCommands(breakMentions(breakLinks(text, hosts)))

/** A line in which code counts too, for titles and messages of commits. */
export const harmlessLine = (line: string): string => breakText(toVisibleLine(line), noHosts)

// A merge request of GitLab, and a user whose name begins with a line.
const gitlabMark = /(!|&#0*33;?|&#x0*21;?|&excl;?)(?=\d)|(?<![A-Za-z0-9])@(?=_)/gi
// GitLab runs a line such as `/merge` as a command of the token's owner. It ignores carriage returns.
const quickAction = /^([^\S\n]*)\/(?=[\w-]+(?:\s|$))/gm

/**
 * The same for GitLab, also without references to merge requests and quick actions: those in code too, as what GitLab
 * reads as code differs by version.
 */
export const gitlabText = (markdown: string, hosts: LinkHosts = noHosts): string =>
  githubText(markdown, hosts)
    .replace(gitlabMark, `$&${zeroWidthSpace}`)
    .replace(quickAction, `$1${zeroWidthSpace}/`)

// Linear makes a mention of the address of a person's page, also in code (linear.app/developers/agent-interaction).
const linearPerson = /(linear\.app\/[\w-]+\/)(?=profiles\/)/gi
const tagStart = /<(?=[A-Za-z/!?])/g

/** Linear's Markdown without mentions of people. */
export const linearText = (markdown: string): string =>
  mapMarkdown(markdown, {
    clean: (line) => line,
    text: (text) => breakMentions(text.replace(tagStart, `<${zeroWidthSpace}`)),
    code: (line) => line,
    htmlStart: /(?!)/,
  }).replace(linearPerson, `$1${zeroWidthSpace}`)

/**
 * Removes comments of HTML, which no reader sees: those alone on their line, and those behind words, as what follows
 * must not begin a line.
 */
const withoutComments = (text: string): string => {
  const kept: string[] = []
  let end = 0
  for (let start = text.indexOf('<!--'); start !== -1; start = text.indexOf('<!--', end)) {
    const close = text.indexOf('-->', start + 4)
    if (close === -1) break
    kept.push(text.slice(end, start))
    end = close + 3
  }
  if (end === 0) return text
  // A space stays, so that no two parts become one word, such as a secret.
  const visible = [...kept, text.slice(end)].join(' ')
  return visible.trim() === '' || /[^\s>*+.)\d-]/.test(kept[0] ?? '') ? visible : text
}

/** Characters that no reader sees (Unicode DerivedCoreProperties, Default_Ignorable_Code_Point), and annotations. */
const unseen = /[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\u2028\u2029\p{Surrogate}]/u
const everyUnseen = new RegExp(unseen.source, 'gu')

/** Removes control sequences and what no reader sees: text could hide there, for people or for the next agent. */
const toVisibleLine = (line: string): string => {
  const plain = toPlainText(line)
  if (!unseen.test(plain)) return plain
  return plain.replaceAll(everyUnseen, (found, offset: number) => {
    if (/\p{Surrogate}/u.test(found)) return '\ufffd'
    if (/[\u2028\u2029]/.test(found)) return ' '
    const before = plain.slice(Math.max(0, offset - 4), offset)
    return isNeeded(found, before, plain.slice(offset + 1, offset + 3)) ? found : ''
  })
}

const emoji = /\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?$/u
const joining =
  /^(?![\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}])[\p{L}\p{M}]$/u

/** The form of an emoji, the joints of one of several, and those between letters of scripts that have them. */
const isNeeded = (found: string, before: string, after: string): boolean => {
  if (/[\ufe0e\ufe0f]/.test(found))
    return (
      /\p{Extended_Pictographic}$/u.test(before) ||
      (/[\d#*]$/.test(before) && after[0] === '\u20e3')
    )
  if (!/[\u200c\u200d]/.test(found)) return false
  const isBetweenEmoji = emoji.test(before) && /^\p{Extended_Pictographic}/u.test(after)
  const [next = ''] = after
  return (
    (found === '\u200d' && isBetweenEmoji) || (joining.test(before.slice(-1)) && joining.test(next))
  )
}
