import type { TargetSettings } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { isAddress } from '../../../shared/targets/schema.ts'
import { ownChat } from '../../../shared/targets/targets.ts'
import { DeliveryError, TokenRefused } from '../delivery-error.ts'
import { toStatusError, requestTarget, secondsToMs, type TargetResponse } from '../request.ts'
import { textOfValue, valueAt } from '../../util/payload-path.ts'
import type { Sender, Sent } from '../sender.ts'
import { telegramText } from '../format/telegram.ts'
import { type TokenSource, withToken } from '../token.ts'

const telegram = 'telegram'

/** Messages from a bot of Telegram (core.telegram.org/bots/api#sendmessage). */
export const createTelegram = (
  { api_url: apiUrl = 'https://api.telegram.org', me }: TargetSettings['telegram'],
  token: TokenSource,
): Sender => ({
  isIdempotent: false,
  // core.telegram.org/bots/api#getme
  check: async (_, asking) =>
    withToken(token, async (botToken) => {
      const url = toTelegramUrl(apiUrl, botToken, 'getMe')
      const response = await requestTarget(url, { target: telegram, attempt: asking })
      check(response)
      return response
    }),
  send: async ({ address, text }, attempt) =>
    withToken(token, async (botToken) => {
      const url = toTelegramUrl(apiUrl, botToken, 'sendMessage')
      const converted = telegramText(text)
      // Telegram rejects empty messages: show the fences of an empty code block.
      const formatted = converted.text.trim() === '' ? { text, entities: [] } : converted
      const [named = '', topic] = address.split('/', 2)
      // The topic General has this number in links, and none in requests.
      const thread = topic === undefined || topic === '1' ? undefined : Number(topic)
      const post = async (chat: string, message: object) =>
        requestTarget(url, {
          target: telegram,
          json: {
            chat_id: chat,
            ...(thread !== undefined && { message_thread_id: thread }),
            ...message,
            // Otherwise Telegram requests the first URL that an agent, or its attacker, writes.
            link_preview_options: { is_disabled: true },
          },
          attempt,
        })
      const chat = named === ownChat ? getOwnChat(me) : named
      const response = await post(chat, formatted)
      const newChat = getNewChat(response)
      if (newChat !== undefined) {
        const moved = await post(newChat, formatted)
        check(moved)
        return { note: `the group has a new id: use telegram:${newChat}`, made: toMessage(moved) }
      }
      if (formatted.entities.length > 0 && isBadFormatting(response)) {
        const plain = await post(chat, { text: formatted.text })
        check(plain)
        return { note: 'sent without formatting', made: toMessage(plain) }
      }
      check(response)
      return { made: toMessage(response) }
    }),
})

/** Messages of channels and large groups have a page (core.telegram.org/api/links), which members alone see unless it is public. */
const toMessage = ({ json }: TargetResponse): Sent['made'] => {
  const at = (...path: string[]) => textOfValue(valueAt(json, ['result', ...path]) ?? '')
  const [number, name] = [at('message_id'), at('chat', 'username')]
  const [, id] = /^-100([1-9]\d{0,15})$/.exec(at('chat', 'id')) ?? []
  const chat = /^[A-Za-z]\w{3,31}$/.test(name) ? name : `c/${id}`
  if (id === undefined || !/^[1-9]\d{0,15}$/.test(number)) return undefined
  return { what: 'message', url: `https://t.me/${chat}/${number}` }
}

export const toTelegramUrl = (apiUrl: string, botToken: string, method: string): URL => {
  // Any other form could change the path or the host.
  if (!/^[\w:-]+$/.test(botToken)) throw new TokenRefused()
  return new URL(`${apiUrl}/bot${botToken}/${method}`)
}

const getOwnChat = (me: string | undefined): string => {
  if (me !== undefined) return me
  throw new DeliveryError('permanent', 'targets.telegram.me is missing in gateway.yaml')
}

/**
 * `telegram:reply`: the chat that an update came from, and its topic where the group has topics. Throws
 * `target-invalid`.
 */
export const findTelegramReply = (payload: unknown): string => {
  for (const path of [['message'], ['callback_query', 'message'], ['edited_message']]) {
    const chat = textOfValue(valueAt(payload, [...path, 'chat', 'id']))
    const isTopic = valueAt(payload, [...path, 'is_topic_message']) === true
    const topic = isTopic ? textOfValue(valueAt(payload, [...path, 'message_thread_id'])) : ''
    const address = topic === '' ? chat : `${chat}/${topic}`
    if (isAddress(telegram, address)) return address
  }
  throw new DoorwardError('target-invalid', 'this event is from no chat', {
    hint: 'name a chat: telegram:<chat id>',
  })
}

const getParameters = ({ json }: TargetResponse): Record<string, unknown> =>
  typeof json['parameters'] === 'object' && json['parameters'] !== null
    ? (json['parameters'] as Record<string, unknown>)
    : {}

/** The new id of a group that has become a supergroup; nothing was sent. */
const getNewChat = (response: TargetResponse): string | undefined => {
  const chat = getParameters(response)['migrate_to_chat_id']
  return response.status === 400 && Number.isSafeInteger(chat) ? String(chat) : undefined
}

const getDescription = ({ json }: TargetResponse): string =>
  typeof json['description'] === 'string' ? json['description'].toLowerCase() : ''

const isBadFormatting = (response: TargetResponse): boolean =>
  response.status === 400 && getDescription(response).includes('entit')

const knownErrors: readonly (readonly [description: string, message: string, hint: string])[] = [
  ['chat not found', 'has no such chat', 'check its id, and write to the bot first'],
  [
    'thread not found',
    'has no such topic in this chat',
    'check the topic: the last number of its link, telegram:<chat>/<topic>',
  ],
  ['topic_closed', 'reports that the topic is closed', 'open it, or make the bot an administrator'],
  ['bot was blocked', 'reports that the bot is blocked', 'unblock the bot in Telegram'],
  ["can't initiate", 'does not let a bot write first', 'write /start to the bot'],
  ['bot was kicked', 'reports that the bot was removed from the chat', 'add the bot again'],
  ['not a member', 'reports that the bot is not in the chat', 'add the bot to the chat'],
  ['not enough rights', 'does not let the bot write there', 'allow the bot to send messages'],
  ['have no rights', 'does not let the bot write there', 'allow the bot to send messages'],
  ['chat_write_forbidden', 'does not let the bot write there', 'allow the bot to send messages'],
  [
    'need administrator rights',
    'does not let the bot write there',
    'make the bot an administrator',
  ],
  ['user is deactivated', 'reports that this account is deactivated', 'use another chat'],
]

const check = (response: TargetResponse): void => {
  const { status, json } = response
  // Telegram answers 404 to an invalid token.
  if (status === 401 || status === 404) throw new TokenRefused()
  const retryAfterMs = secondsToMs(getParameters(response)['retry_after'])
  const failure = toStatusError(telegram, response, { retryAfterMs })
  if (failure?.retryability === 'retryable') throw failure
  const description = getDescription(response)
  const error = knownErrors.find(([text]) => description.includes(text))
  if (failure && error) {
    const [, message, hint] = error
    throw new DeliveryError('permanent', `telegram ${message}`, { hint })
  }
  if (failure) throw failure
  if (json['ok'] !== true)
    throw new DeliveryError('indeterminate', 'the response is not from Telegram')
}
