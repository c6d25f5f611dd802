import { toPlainText } from '../../../shared/text.ts'
import type { ResolvedTarget } from '../sender.ts'
import { githubText, slackText } from './mentions.ts'
import { type Limits, splitText } from './split.ts'
import { telegramText } from './telegram.ts'

/** What stands before the text of a comment of ours. */
const longestCommentMark = 128

type Format = Limits & { readonly ready?: (piece: string) => string }

const formats: Readonly<Record<'slack' | 'telegram' | 'discord' | 'email' | 'github', Format>> = {
  // docs.slack.dev/reference/methods/chat.postMessage, markdown_text.
  slack: {
    characters: 12_000,
    parts: 4,
    ready: slackText,
    measure: (piece) => slackText(piece).length,
  },
  // core.telegram.org/bots/api#sendmessage: counted after the formatting is taken out.
  telegram: { characters: 4096, parts: 5, measure: (piece) => telegramText(piece).text.length },
  // discord.com/developers/docs/resources/webhook#execute-webhook.
  discord: { characters: 2000, parts: 5 },
  // No limit of its own, but no server takes everything.
  email: { characters: 2_000_000, parts: 1 },
  // "body is too long (maximum is 65536 characters)".
  github: {
    characters: 65_536 - longestCommentMark,
    parts: 2,
    ready: githubText,
    measure: (piece) => githubText(piece).length,
  },
}

/**
 * The messages that an answer becomes at a target: without what a terminal obeys, mentions taken apart, cut
 * at the target's limit. Of Telegram's the Markdown that they are made of; a file, the log and a program
 * get the answer as it is.
 */
export const partsFor = (target: Pick<ResolvedTarget, 'kind'>, text: string): string[] => {
  switch (target.kind) {
    case 'invalid':
      return []
    case 'log':
    case 'notify':
    case 'file':
    case 'http':
      return [text]
    case 'slack':
    case 'telegram':
    case 'discord':
    case 'email':
    case 'github': {
      const { ready = asItIs, ...limits } = formats[target.kind]
      return splitText(shownText(text), limits).map(ready)
    }
  }
}

const asItIs = (piece: string): string => piece

const shownText = (text: string): string =>
  toPlainText(text).replaceAll(loneSurrogate, '\ufffd').trimEnd().replace(/^\n+/, '') ||
  '(the answer is empty)'

// Half a character: no JSON parser has to take it.
const loneSurrogate = /\p{Surrogate}/gu
