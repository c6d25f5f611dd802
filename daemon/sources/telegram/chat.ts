import type { Gateway } from '../../../shared/config/schema.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import { ownChat } from '../../../shared/targets/targets.ts'
import { telegramText } from '../../delivery/format/telegram.ts'
import { textOfValue, valueAt } from '../../util/payload-path.ts'
import type { Chat, ChatApprovals } from '../../webhook/approvals/chat.ts'
import { SourceFault } from '../source.ts'
import { type BotToken, callBot } from './bot-api.ts'
import { ownData, type TelegramPress } from './press.ts'

/*
 * Approvals in Telegram: a message with two buttons by the bot of `targets.telegram`, presses by its updates, and the
 * message without buttons afterwards.
 */

export type TelegramChatParts = {
  readonly gateway: () => Gateway
  readonly env: () => NodeJS.ProcessEnv
  readonly approvals: ChatApprovals
  readonly signal: AbortSignal
}

const usualApi = 'https://api.telegram.org'
const requestMs = 10_000
const longestSaid = 200

export const getTelegramApi = ({ targets }: Gateway): string => targets.telegram.api_url ?? usualApi

/** The token of the bot that answers; undefined without one. */
export const getAnswerBot = (gateway: Gateway, env: NodeJS.ProcessEnv): BotToken | undefined => {
  const { token_env: name } = gateway.targets.telegram
  const [token] = name === undefined ? [] : listSecrets([name], env)
  return name === undefined || token === undefined ? undefined : { token: token.trim(), name }
}

export class TelegramChat implements Chat {
  readonly kind = 'telegram'
  readonly #parts: TelegramChatParts

  constructor(parts: TelegramChatParts) {
    this.#parts = parts
  }

  /** core.telegram.org/bots/api#sendmessage */
  readonly ask: Chat['ask'] = async ({ address, text, buttons }) => {
    const [named = '', topic] = address.split('/', 2)
    const { me } = this.#parts.gateway().targets.telegram
    if (named === ownChat && me === undefined)
      throw new SourceFault('targets.telegram.me is missing in gateway.yaml', {
        hint: 'write the number of your own chat',
      })
    const sent = await this.#call('sendMessage', {
      chat_id: named === ownChat ? me : named,
      // The topic General has this number in links, and none in requests.
      ...(topic !== undefined && topic !== '1' && { message_thread_id: Number(topic) }),
      ...telegramText(text),
      link_preview_options: { is_disabled: true },
      ...(buttons.length > 0 && {
        reply_markup: {
          inline_keyboard: [
            buttons.map(({ label, id }) => ({ text: label, callback_data: `${ownData}${id}` })),
          ],
        },
      }),
    })
    return {
      channel: textOfValue(valueAt(sent, ['chat', 'id'])),
      id: textOfValue(valueAt(sent, ['message_id'])),
    }
  }

  /** core.telegram.org/bots/api#editmessagetext, which takes the buttons away */
  readonly update: Chat['update'] = async (message, text) => {
    await this.#call('editMessageText', {
      chat_id: message.channel,
      message_id: Number(message.id),
      ...telegramText(text),
      link_preview_options: { is_disabled: true },
    })
  }

  /** core.telegram.org/bots/api#answercallbackquery: until then the button spins. */
  readonly pressed = async (
    { queryId, buttonId, userId, message }: TelegramPress,
    bot = getAnswerBot(this.#parts.gateway(), this.#parts.env()),
  ): Promise<void> => {
    const { approvals } = this.#parts
    const said =
      buttonId === undefined
        ? undefined
        : await approvals.press({ kind: 'telegram', buttonId, userId: String(userId), message })
    await this.#call(
      'answerCallbackQuery',
      {
        callback_query_id: queryId,
        ...(said !== undefined && { text: said.slice(0, longestSaid), show_alert: true }),
      },
      bot,
    ).catch(() => undefined)
  }

  async #call(
    method: string,
    json: object,
    bot = getAnswerBot(this.#parts.gateway(), this.#parts.env()),
  ): Promise<unknown> {
    const { gateway, signal } = this.#parts
    if (!bot)
      throw new SourceFault('targets.telegram has no token', {
        hint: 'name the variable with the token of your bot in targets.telegram.token_env',
      })
    return callBot(getTelegramApi(gateway()), bot, method, json, { signal, timeoutMs: requestMs })
  }
}
