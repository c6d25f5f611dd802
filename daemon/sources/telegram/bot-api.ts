import { DeliveryError, TokenRefused } from '../../delivery/delivery-error.ts'
import { requestTarget, secondsToMs, toStatusError } from '../../delivery/request.ts'
import { toTelegramUrl } from '../../delivery/targets/telegram.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'
import { SourceFault } from '../source.ts'

export type BotToken = { readonly token: string; readonly name: string }

/** An answer has a hundred updates at most. */
const maxResponseBytes = 32 * 1024 * 1024

/**
 * Calls a method of the Bot API and returns its result (core.telegram.org/bots/api#making-requests). The address has
 * the token, so no error names it. Throws `SourceFault`.
 */
export const callBot = async (
  apiUrl: string,
  { token, name }: BotToken,
  method: string,
  json: object,
  asking: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<unknown> => {
  try {
    const response = await requestTarget(toTelegramUrl(apiUrl, token, method), {
      target: 'telegram',
      json,
      maxResponseBytes,
      attempt: asking,
    })
    const { status } = response
    if (response.json['ok'] === true) return response.json['result']
    if (status === 409) throw toConflict(textAt(response.json, 'description') ?? '')
    // Telegram answers 404 to what is no token.
    if (status === 401 || status === 404) throw new TokenRefused()
    const retryAfterMs = secondsToMs(valueAt(response.json, ['parameters', 'retry_after']))
    const failure = toStatusError('telegram', response, { retryAfterMs })
    throw failure
      ? new SourceFault(failure.message, { hint: failure.hint, retryAfterMs })
      : new SourceFault('the response is not from Telegram')
  } catch (error) {
    if (error instanceof TokenRefused)
      throw new SourceFault(`telegram refused the token in ${name}`, {
        hint: `copy it from @BotFather (/mybots, API Token), and put it into ${name} in .env`,
        isFinal: true,
      })
    if (error instanceof DeliveryError) throw new SourceFault(error.message, { hint: error.hint })
    throw error
  }
}

/** Two readers of one bot, or a reader beside a webhook. */
const toConflict = (description: string): SourceFault =>
  /webhook/i.test(description)
    ? new SourceFault('telegram sends the updates of this bot to a webhook (409)', {
        hint: 'delete the webhook of the bot (deleteWebhook), or use another bot: doorward help telegram',
      })
    : new SourceFault('another program reads the updates of this bot (409)', {
        hint: 'stop it, or make a bot for each with @BotFather: doorward help telegram',
      })
