import { DoorwardError } from '../../../shared/errors.ts'
import { isAddress } from '../../../shared/targets/schema.ts'
import { textAt } from '../../util/payload-path.ts'
import { telegramText, type TelegramEntity } from '../format/telegram.ts'

/*
 * `slack:reply`: the thread of an event, or the `response_url` of a slash command, button or form. The URL is
 * a secret: who has it can write there. It stays in memory with its event, and no message names it.
 */

const isUrl = (text: string): boolean => /^https?:\/\//i.test(text) && URL.canParse(text)

/** True for an address that is a `response_url` and not a channel. */
export const isResponseUrl = (address: string): boolean => isUrl(address)

/**
 * The place that Slack's payload came from: its `response_url`, else channel and thread, where a message that is in no
 * thread begins one. Throws `target-invalid`.
 */
export const findReplyAddress = (payload: unknown): string => {
  const url =
    textAt(payload, 'response_url') ?? textAt(payload, 'response_urls', '0', 'response_url')
  if (url !== undefined && isUrl(url)) return url
  const at = (...names: string[]) => textAt(payload, 'event', ...names)
  const channel = at('channel') ?? at('item', 'channel')
  const thread =
    at('thread_ts') ??
    at('message', 'thread_ts') ??
    at('message', 'ts') ??
    at('message_ts') ??
    at('ts') ??
    at('item', 'ts')
  const address = [channel, thread].filter((part) => part !== undefined).join('/')
  if (channel !== undefined && isAddress('slack', address)) return address
  throw new DoorwardError(
    'target-invalid',
    'this event has no response_url, and no channel to answer in',
    { hint: 'name a channel: slack:#channel' },
  )
}

/**
 * The URL of a response, if it is Slack's: at hooks.slack.com, or at the server of `targets.slack.api_url` or
 * its `hooks.` host. Undefined otherwise: the body of a delivery must not choose another host.
 */
export const parseResponseUrl = (address: string, apiUrl: string): URL | undefined => {
  const url = new URL(address)
  const api = new URL(apiUrl)
  const isPlain = url.username === '' && url.password === '' && url.hash === ''
  const isSlack =
    url.origin === 'https://hooks.slack.com' ||
    url.origin === api.origin ||
    url.origin === `https://hooks.${api.host}`
  return isPlain && isSlack ? url : undefined
}

/**
 * The body of a response, which only the person who typed the command sees. It replaces no message. A
 * `response_url` refuses `markdown_text`, and takes mrkdwn only.
 */
export const toResponse = (markdown: string): object => ({
  text: toMrkdwn(markdown),
  response_type: 'ephemeral',
  replace_original: false,
  unfurl_links: false,
  unfurl_media: false,
})

const marks: Readonly<Record<Exclude<TelegramEntity['type'], 'text_link'>, [string, string]>> = {
  bold: ['*', '*'],
  italic: ['_', '_'],
  strikethrough: ['~', '~'],
  code: ['`', '`'],
  pre: ['```\n', '\n```'],
}

/** Slack's own format (docs.slack.dev, "Formatting message text"). */
export const toMrkdwn = (markdown: string): string => {
  const { text, entities } = telegramText(markdown)
  const before = new Map<number, string>()
  const after = new Map<number, string>()
  for (const { type, offset, length, url = '' } of joinPieces(entities)) {
    // `|` and `>` would end the address.
    const escaped = escape(url).replaceAll('|', '%7C')
    const [open, close] = type === 'text_link' ? [`<${escaped}|`, '>'] : marks[type]
    const end = offset + length
    // The later of two that begin or end together is inside.
    before.set(offset, (before.get(offset) ?? '') + open)
    after.set(end, close + (after.get(end) ?? ''))
  }
  const borders = [...new Set([0, ...before.keys(), ...after.keys(), text.length])]
  borders.sort((a, b) => a - b)
  return borders
    .map((start, index) => {
      const piece = text.slice(start, borders[index + 1] ?? start)
      return `${after.get(start) ?? ''}${before.get(start) ?? ''}${escape(piece)}`
    })
    .join('')
}

/** Formats with the pieces around a format inside them as one, the outer ones first. */
const joinPieces = (entities: readonly TelegramEntity[]): TelegramEntity[] => {
  const joined: TelegramEntity[] = []
  for (const entity of entities) {
    const place = joined.findLastIndex(
      ({ type, url, offset, length }) =>
        type === entity.type && url === entity.url && offset + length === entity.offset,
    )
    const before = joined[place]
    if (before) joined[place] = { ...before, length: before.length + entity.length }
    else joined.push(entity)
  }
  return joined.toSorted((a, b) => a.offset - b.offset || b.length - a.length)
}

const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
