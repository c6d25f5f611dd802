import type { TargetSettings } from '../../../shared/config/schema.ts'
import { ownChat } from '../../../shared/config/targets.ts'
import { DeliveryError, TokenRefused } from '../delivery-error.ts'
import { failureOfAnswer, requestTarget, secondsIn, type TargetAnswer } from '../request.ts'
import type { Sender } from '../sender.ts'
import { telegramText } from '../format/telegram.ts'
import { type TokenSource, withToken } from '../token.ts'

const telegram = 'telegram'

/** Messages by a bot of Telegram (core.telegram.org/bots/api#sendmessage). */
export const createTelegram = (
  { api_url: apiUrl = 'https://api.telegram.org', me }: TargetSettings['telegram'],
  token: TokenSource,
): Sender => ({
  knowsRepeats: false,
  send: async ({ address, text }, attempt) =>
    withToken(token, async (botToken) => {
      // Another form would be another path, or another host.
      if (!/^[\w:-]+$/.test(botToken)) throw new TokenRefused()
      const url = new URL(`${apiUrl}/bot${botToken}/sendMessage`)
      const made = telegramText(text)
      // An empty message is refused: of an empty code block its fences are shown.
      const formatted = made.text.trim() === '' ? { text, entities: [] } : made
      const post = async (chat: string, message: object) =>
        requestTarget(url, {
          target: telegram,
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            chat_id: chat,
            ...message,
            // Telegram would call at the first address that an agent, or who steers it, writes.
            link_preview_options: { is_disabled: true },
          }),
          attempt,
        })
      const chat = address === ownChat ? getOwnChat(me) : address
      const answer = await post(chat, formatted)
      const newChat = newChatIn(answer)
      if (newChat !== undefined) {
        check(await post(newChat, formatted))
        return `the group has a new id: write telegram:${newChat}`
      }
      if (formatted.entities.length > 0 && isBadFormatting(answer)) {
        check(await post(chat, { text: formatted.text }))
        return 'sent without formatting'
      }
      check(answer)
      return undefined
    }),
})

const getOwnChat = (me: string | undefined): string => {
  if (me !== undefined) return me
  throw new DeliveryError('refused', 'targets.telegram.me is missing in gateway.yaml')
}

const getParameters = ({ json }: TargetAnswer): Record<string, unknown> =>
  typeof json['parameters'] === 'object' && json['parameters'] !== null
    ? (json['parameters'] as Record<string, unknown>)
    : {}

/** A group that has become a supergroup: nothing was sent, and it lives on under another id. */
const newChatIn = (answer: TargetAnswer): string | undefined => {
  const chat = getParameters(answer)['migrate_to_chat_id']
  return answer.status === 400 && Number.isSafeInteger(chat) ? String(chat) : undefined
}

const getDescription = ({ json }: TargetAnswer): string =>
  typeof json['description'] === 'string' ? json['description'].toLowerCase() : ''

const isBadFormatting = (answer: TargetAnswer): boolean =>
  answer.status === 400 && getDescription(answer).includes('entit')

/** What Telegram says in its description, and what a person can do about it. */
const known: readonly (readonly [said: string, what: string, hint: string])[] = [
  ['chat not found', 'knows no such chat', 'check its id, and write to the bot first'],
  ['bot was blocked', 'says that the bot was blocked', 'unblock the bot in Telegram'],
  ["can't initiate", 'lets no bot write first', 'write /start to the bot'],
  ['bot was kicked', 'says that the bot was removed from the chat', 'add the bot again'],
  ['not a member', 'says that the bot is no member of the chat', 'add the bot to the chat'],
  ['not enough rights', 'does not let the bot write there', 'allow the bot to send messages'],
  ['have no rights', 'does not let the bot write there', 'allow the bot to send messages'],
  ['chat_write_forbidden', 'does not let the bot write there', 'allow the bot to send messages'],
  [
    'need administrator rights',
    'does not let the bot write there',
    'make the bot an administrator',
  ],
  ['user is deactivated', 'says that this account is gone', 'name another chat'],
]

const check = (answer: TargetAnswer): void => {
  const { status, json } = answer
  // It calls a token that is none 404.
  if (status === 401 || status === 404) throw new TokenRefused()
  const retryAfterMs = secondsIn(getParameters(answer)['retry_after'])
  const failure = failureOfAnswer(telegram, answer, { retryAfterMs })
  if (failure?.fate === 'later') throw failure
  const description = getDescription(answer)
  const words = known.find(([said]) => description.includes(said))
  if (failure && words) {
    const [, what, hint] = words
    throw new DeliveryError('refused', `telegram ${what}`, { hint })
  }
  if (failure) throw failure
  if (json['ok'] !== true)
    throw new DeliveryError('unknown', 'telegram gave an answer that is none of Telegram')
}
