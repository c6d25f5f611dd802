/*
 * Chats in which an answer is approved. A source of Slack or Telegram that can post messages with buttons and hears
 * presses connects a `Chat`; nothing here knows how it talks.
 *
 *   an event waits -> `ask` for each address of that kind in `approve.by` -> a person presses -> `press` ->
 *   the first answer counts -> `update` of each message of the event: no buttons, who answered and when
 *
 * How a source uses it:
 *
 *   const disconnect = approvals.connect({ kind: 'slack', ask, update })
 *   const said = await approvals.press({ kind: 'slack', buttonId, userId, message })
 *
 * 1. `connect` asks what waits already and was not asked in this chat, so a source may connect late, again after a
 *    reload, and after a restart. One chat of a kind is connected at a time: a later one replaces it.
 * 2. `buttonId` is the data of a button: 22 characters that mean nothing without the record in memory. It is never
 *    trusted alone: `press` compares `userId` with `approve.who` and `message` with the message that was posted.
 *    The ids are those of the provider (`U024BE7LH`, `123456789`), never names.
 * 3. `press` never rejects. Its sentence, at most 200 characters, is for the person who pressed: a toast or an
 *    ephemeral message. It says too that someone was first, may not answer, or that the question is gone.
 * 4. `text` is Markdown made harmless for its kind by `toParts`. Post it as an answer is posted, in one message.
 * 5. A question without `buttons` is only told: `who` names no one there, so no one may press.
 */

export type ChatKind = 'slack' | 'telegram'

/** A message, as its provider names it: `C024BE91L` and `1712.0001`, or `-100200` and `42`. */
export type ChatMessage = { readonly channel: string; readonly id: string }

export type ChatButton = {
  /** `Send`, `Do not send` */
  readonly label: string
  readonly style: 'primary' | 'danger'
  /** The data of the button: 16 random bytes as base64url. */
  readonly id: string
}

export type ChatQuestion = {
  readonly eventId: string
  /** From `approve.by`, without its kind: `#ops`, `@me`. */
  readonly address: string
  /** What would be sent where, with the first lines of the answer. */
  readonly text: string
  readonly buttons: readonly ChatButton[]
}

export type Chat = {
  readonly kind: ChatKind
  /** Posts the question. Rejects with a `DoorwardError` where it cannot: the event tells it to the owner. */
  readonly ask: (question: ChatQuestion) => Promise<ChatMessage>
  /** Replaces the text of a question, and takes its buttons away. Failures are ignored. */
  readonly update: (message: ChatMessage, text: string) => Promise<void>
}

export type ChatPress = {
  readonly kind: ChatKind
  readonly buttonId: string
  readonly userId: string
  /** The message that has the button. */
  readonly message: ChatMessage
}

/** A source of a chat uses this. */
export type ChatApprovals = {
  /** Returns what disconnects it. */
  readonly connect: (chat: Chat) => () => void
  /** Resolves with what the person who pressed is told. */
  readonly press: (press: ChatPress) => Promise<string>
}
