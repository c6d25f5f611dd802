import { toPlainText } from '../../../shared/text.ts'
import type { ResolvedTarget, SeenCode } from '../sender.ts'
import { githubText, gitlabText, linearText, slackText } from './mentions.ts'
import { type Limits, splitText } from './split.ts'
import { telegramText, withAlignedTables } from './telegram.ts'

/** For the hidden mark before the text. */
const maxMarkLength = 128

type Format = Limits & { readonly convert?: (piece: string) => string }

const github: Format = {
  // "body is too long (maximum is 65536 characters)".
  characters: 65_536 - maxMarkLength,
  parts: 2,
  convert: githubText,
  measure: (piece) => githubText(piece).length,
}

const gitlab: Format = {
  // docs.gitlab.com/administration/instance_limits: a note has a million characters at most.
  characters: 1_000_000 - maxMarkLength,
  parts: 1,
  convert: gitlabText,
  measure: (piece) => gitlabText(piece).length,
}

/** The other kinds get the answer whole, or make messages of it themselves. */
const formats: Partial<Record<ResolvedTarget['kind'], Format>> = {
  // docs.slack.dev/reference/methods/chat.postMessage, markdown_text.
  slack: {
    characters: 12_000,
    parts: 4,
    convert: slackText,
    measure: (piece) => slackText(piece).length,
  },
  // core.telegram.org/bots/api#sendmessage: counted without the formatting.
  telegram: { characters: 4096, parts: 5, measure: (piece) => telegramText(piece).text.length },
  // discord.com/developers/docs/resources/webhook#execute-webhook.
  discord: {
    characters: 2000,
    parts: 5,
    convert: withAlignedTables,
    measure: (piece) => withAlignedTables(piece).length,
  },
  // "The entered text is too long. It exceeds the allowed limit of 32,767 characters."
  jira: { characters: 30_000, parts: 2, measure: (piece) => telegramText(piece).text.length },
  // Linear documents no limit; its server refuses requests of some hundred KB.
  linear: {
    characters: 65_536,
    parts: 2,
    convert: linearText,
    measure: (piece) => linearText(piece).length,
  },
  // Mail has no limit, but servers do.
  email: { characters: 2_000_000, parts: 1 },
  github,
  gitlab,
}

/**
 * The messages of an answer to a target: without control sequences and mentions, cut at the target's limit.
 * For Telegram these are still Markdown; a file, the log and an HTTP receiver get the answer unchanged.
 */
export const toParts = (target: Pick<ResolvedTarget, 'kind'>, text: string): string[] => {
  if (target.kind === 'invalid') return []
  const format = formats[target.kind]
  if (!format) return [text]
  const { convert = (piece: string) => piece, ...limits } = format
  return splitText(cleanText(text), limits).map(convert)
}

/** One text of GitHub, cut at its limit. */
export const toGithubBody = (text: string): string =>
  splitText(cleanText(text), { ...github, parts: 1 })
    .map(githubText)
    .join('')

/** One text of GitLab, cut at its limit. */
export const toGitlabBody = (text: string): string =>
  splitText(cleanText(text), gitlab).map(gitlabText).join('')

/** What the agent did not see, as a part of the answer: an answer about a part looks as if it were about all. */
export const describeLeftOut = ({ leftOut = [], notRead = [] }: LeftOut = {}): string => {
  if (leftOut.length === 0) return ''
  const names = notRead.slice(0, shownNames).map(toCode)
  if (notRead.length > names.length) names.push('and more')
  const files = names.length === 0 ? '' : ` Not read, or not to the end: ${names.join(', ')}.`
  return `_The agent did not see everything: ${leftOut.join('; ')}.${files}_`
}

type LeftOut = Pick<SeenCode, 'leftOut' | 'notRead'>

const shownNames = 20

/** A name as code, in which nothing is a mention or a link. */
export const toCode = (name: string): string =>
  `\`${name.replaceAll(/[`\p{C}\p{Zl}\p{Zp}]/gu, ' ')}\``

/** Text of a stranger as a bold line of Markdown, in which nothing is a mark or a link of its own. */
export const toBoldLine = (line: string): string => {
  const escaped = line
    .replaceAll(/[\\`*~[\]]|(?<!\w)_|_(?!\w)/g, '\\$&')
    // In the format of Slack too, these three are entities.
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
  return `**${escaped}**`
}

/** The first line of a text that has words, without marks of Markdown. */
export const toTitle = (text: string, maxLength: number): string => {
  const line = text.split('\n').find((one) => /[\p{L}\p{N}]/u.test(one)) ?? text
  const words = line.replace(/^[\s#>*_-]+/, '').trim()
  if (words.length <= maxLength) return words
  return `${words.slice(0, maxLength - 1).replace(/\p{Surrogate}$/u, '')}…`
}

/** True for an answer that shows nothing anywhere. */
export const isEmpty = (text: string): boolean =>
  [text.slice(0, 1000), text].every((some) => toPlainText(some).trim() === '')

export const cleanText = (text: string): string =>
  toPlainText(text).replaceAll(loneSurrogate, '\ufffd').trimEnd().replace(/^\n+/, '') ||
  '(the answer is empty)'

// Half a surrogate pair: JSON parsers may reject it.
const loneSurrogate = /\p{Surrogate}/gu
