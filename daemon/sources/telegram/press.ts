import { textAt, valueAt } from '../../util/payload-path.ts'

/** The prefix of the data of our own buttons, of which Telegram takes 64 bytes. */
export const ownData = 'doorward:'

/** A press of a button (core.telegram.org/bots/api#callbackquery). */
export type TelegramPress = {
  readonly queryId: string
  /** Undefined for a button of another program. */
  readonly buttonId: string | undefined
  readonly userId: number
  readonly message: { readonly channel: string; readonly id: string }
}

/** Undefined for an update that is no press. A client may send any data: it proves nothing. */
export const findPress = (update: unknown): TelegramPress | undefined => {
  const queryId = textAt(update, 'callback_query', 'id')
  const userId = valueAt(update, ['callback_query', 'from', 'id'])
  if (queryId === undefined || typeof userId !== 'number') return undefined
  const data = textAt(update, 'callback_query', 'data') ?? ''
  const at = (...path: string[]) => valueAt(update, ['callback_query', 'message', ...path])
  return {
    queryId,
    buttonId: data.startsWith(ownData) ? data.slice(ownData.length) : undefined,
    userId,
    message: { channel: toId(at('chat', 'id')), id: toId(at('message_id')) },
  }
}

const toId = (value: unknown): string => (Number.isSafeInteger(value) ? String(value) : '')
