import { toPlainText } from '../../../shared/text.ts'
import type { ResolvedTarget, SeenCode } from '../sender.ts'
import { githubText, gitlabText, harmlessLine, linearText } from './harmless.ts'
import type { LinkHosts } from './links.ts'
import { slackText } from './mentions.ts'
import { type Limits, splitText } from './split.ts'
import { telegramText, withAlignedTables } from './telegram.ts'

/** For the hidden mark before the text. */
const maxMarkLength = 128

type Format = Omit<Limits, 'measure'> & {
  /** By default it stays. */
  readonly convert?: (piece: string, hosts?: LinkHosts) => string
  /** Where `convert` does not give the text that counts. */
  readonly measure?: (piece: string) => number
  /** `convert` removes by itself what no reader sees, as it has to know which suggestions it changes. */
  readonly cleans?: boolean
}

const github: Format = {
  // "body is too long (maximum is 65536 characters)".
  characters: 65_536 - maxMarkLength,
  parts: 2,
  convert: githubText,
  cleans: true,
}

const gitlab: Format = {
  // docs.gitlab.com/administration/instance_limits: a note has a million characters at most.
  characters: 1_000_000 - maxMarkLength,
  parts: 1,
  convert: gitlabText,
  cleans: true,
}

/** The other kinds get the answer whole, or make messages of it themselves. */
const formats: Partial<Record<ResolvedTarget['kind'], Format>> = {
  // docs.slack.dev/reference/methods/chat.postMessage, markdown_text.
  slack: {
    characters: 12_000,
    parts: 4,
    convert: slackText,
  },
  // core.telegram.org/bots/api#sendmessage: counted without the formatting.
  telegram: { characters: 4096, parts: 5, measure: (piece) => telegramText(piece).text.length },
  // discord.com/developers/docs/resources/webhook#execute-webhook.
  discord: {
    characters: 2000,
    parts: 5,
    convert: withAlignedTables,
  },
  // "The entered text is too long. It exceeds the allowed limit of 32,767 characters."
  jira: { characters: 30_000, parts: 2, measure: (piece) => telegramText(piece).text.length },
  // Linear documents no limit; its server refuses requests of some hundred KB.
  linear: {
    characters: 65_536,
    parts: 2,
    convert: linearText,
  },
  // Mail has no limit, but servers do.
  email: { characters: 2_000_000, parts: 1 },
  github,
  gitlab,
}

/**
 * The messages of an answer to a target: without control sequences, mentions and what else its place would act on, cut
 * at the target's limit. For Telegram these are still Markdown; a file, the log and an HTTP receiver get the answer
 * unchanged. `hosts` are those whose links stay links at GitHub and GitLab.
 */
export const toParts = (
  target: Pick<ResolvedTarget, 'kind'>,
  text: string,
  hosts?: LinkHosts,
): string[] => {
  if (target.kind === 'invalid') return []
  const format = formats[target.kind]
  return format ? applyFormat(format, text, hosts) : [text]
}

const applyFormat = (format: Format, text: string, hosts: LinkHosts | undefined): string[] => {
  const { convert = (piece: string) => piece, cleans, ...limits } = format
  const convertOne = (piece: string) => convert(piece, hosts)
  const measure = format.measure ?? ((piece: string) => convertOne(piece).length)
  const cleaned = cleanText(text)
  const given = cleans && cleaned !== emptyText ? trimText(text) : cleaned
  return splitText(given, { ...limits, measure }).map(convertOne)
}

/** One text of GitHub, cut at its limit. Without `hosts` all links are kept as text. */
export const toGithubBody = (text: string, hosts?: LinkHosts): string =>
  applyFormat({ ...github, parts: 1 }, text, hosts).join('')

/** One text of GitLab, cut at its limit. */
export const toGitlabBody = (text: string, hosts?: LinkHosts): string =>
  applyFormat(gitlab, text, hosts).join('')

/** The title of an issue or a pull request, the first line of a commit: links and code count as text. */
export const toHarmlessTitle = (text: string, maxLength: number): string =>
  toTitle(harmlessLine(findWords(toGithubBody(text))), maxLength)

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
  const words = findWords(text)
    .replace(/^[\s#>*_-]+/, '')
    .trim()
  if (words.length <= maxLength) return words
  return `${words.slice(0, maxLength - 1).replace(/\p{Surrogate}$/u, '')}…`
}

const findWords = (text: string): string =>
  text.split('\n').find((one) => /[\p{L}\p{N}]/u.test(one)) ?? text

/** True for an answer that shows nothing anywhere. */
export const isEmpty = (text: string): boolean =>
  [text.slice(0, 1000), text].every((some) => toPlainText(some).trim() === '')

export const cleanText = (text: string): string =>
  trimText(toPlainText(text).replaceAll(loneSurrogate, '\ufffd')) || emptyText

const trimText = (text: string): string =>
  text.replaceAll('\r\n', '\n').trimEnd().replace(/^\n+/, '')

const emptyText = '(the answer is empty)'

// Half a surrogate pair: JSON parsers may reject it.
const loneSurrogate = /\p{Surrogate}/gu
