import { createHmac, timingSafeEqual } from 'node:crypto'
import { textAt } from '../util/payload-path.ts'

export type OwnMessages = {
  /** Posts a message; until it is answered, nobody knows which one it is. */
  readonly post: <Value>(send: () => Promise<Value>) => Promise<Value>
  /** A message of ours, by what chat.postMessage answers. */
  readonly remember: (answer: unknown) => void
  /** True for an event of Slack about a message of ours that is remembered. */
  readonly isOwnMessage: (payload: unknown) => boolean
  /**
   * Resolves when what is being posted now is answered, or after 2 s, as Slack waits 3 s for us; undefined
   * when nothing is being posted.
   */
  readonly posted: () => Promise<void> | undefined
  /** What is remembered, the oldest first. */
  readonly names: () => readonly string[]
  /** Remembers a message under the name that another one has it under. */
  readonly put: (name: string) => void
  /** Calls back for each message from now on, until the returned function is called. */
  readonly follow: (listener: (name: string) => void) => () => void
}

/** What is said of an event that is passed over for that. */
const ownMessageDetail = 'it is about a message of our own'

const most = 1000
const longestWaitMs = 2000

/**
 * The loop guard of Slack: an app that may read a channel is told of its own messages too. Channel and
 * `ts` together name a message (docs.slack.dev/messaging), and only Slack writes them, so that nobody else
 * can have an event passed over. An event can be quicker than the answer to the post. A stop forgets: an
 * answer that was on its way then may wake its webhook once more.
 */
export const createOwnMessages = (waitMs = longestWaitMs): OwnMessages => {
  const known = new Set<string>()
  const onTheirWay = new Set<Promise<unknown>>()
  const listeners = new Set<(name: string) => void>()
  const put = (name: string): void => {
    known.add(name)
    const [oldest] = known
    if (known.size > most && oldest !== undefined) known.delete(oldest)
    for (const listener of listeners) listener(name)
  }
  return {
    post: async (send) => {
      const sent = send()
      onTheirWay.add(sent)
      try {
        return await sent
      } finally {
        onTheirWay.delete(sent)
      }
    },
    remember: (answer) => {
      const name = toMessageName(textAt(answer, 'channel'), textAt(answer, 'ts'))
      if (name !== undefined) put(name)
    },
    isOwnMessage: (payload) => {
      if (known.size === 0) return false
      const channel = textAt(payload, 'event', 'channel')
      // A change or removal (`message_changed`, `message_deleted`) names the message inside.
      return [['ts'], ['message', 'ts'], ['previous_message', 'ts']].some((path) => {
        const name = toMessageName(channel, textAt(payload, 'event', ...path))
        return name !== undefined && known.has(name)
      })
    },
    posted: () => (onTheirWay.size === 0 ? undefined : awaitAnswers([...onTheirWay], waitMs)),
    names: () => [...known],
    put,
    follow: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}

const toMessageName = (channel: string | undefined, ts: string | undefined): string | undefined =>
  channel === undefined || ts === undefined ? undefined : `${channel} ${ts}`

const awaitAnswers = async (sent: readonly Promise<unknown>[], waitMs: number): Promise<void> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, waitMs)))
  await Promise.race([Promise.allSettled(sent), late])
  clearTimeout(timer)
}

export type CommentMarks = {
  /** A hidden line by which a comment of ours is known again: it names event and part. */
  readonly markFor: (eventId: string, part: number, text: string) => string
  /** The body of a comment of ours. */
  readonly bodyOf: (mark: string, text: string) => string
  /** True for an event about a comment that this home wrote, and nobody has changed since. */
  readonly isOwnComment: (payload: unknown) => boolean
}

/** What is said of an event that is passed over for that. */
const ownCommentDetail = 'it is about a comment of our own'

const begin = '<!-- doorward:'
const marked = /^<!-- doorward:(evt_[0-9a-f]{18}):(\d{1,3}) ([\w-]{43}) -->\s*/

/**
 * The loop guard. The mark is signed together with the text, by a key that only this home has: a stranger
 * can neither make one nor put one that was copied over words of their own, and so cannot have an event
 * passed over.
 */
export const createCommentMarks = (apiToken: string): CommentMarks => {
  const key = createHmac('sha256', apiToken).update('doorward mark of a comment').digest()
  const signature = (eventId: string, part: string, text: string): string =>
    createHmac('sha256', key)
      // White space may be changed on the way.
      .update(`${eventId}\n${part}\n${text.replaceAll(/\s+/g, ' ').trim()}`)
      .digest('base64url')

  return {
    markFor: (eventId, part, text) =>
      `${begin}${eventId}:${part} ${signature(eventId, String(part), text)} -->`,
    bodyOf: (mark, text) => `${mark}\n${text}`,
    isOwnComment: (payload) => {
      const body = textAt(payload, 'comment', 'body')
      if (body === undefined || !body.startsWith(begin)) return false
      const [line, eventId, part, given] = marked.exec(body) ?? []
      if (line === undefined || !eventId || !part || !given) return false
      const expected = signature(eventId, part, body.slice(line.length))
      return timingSafeEqual(Buffer.from(given), Buffer.from(expected))
    },
  }
}

/** What keeps an answer from waking the webhook that it answers. */
export type LoopGuard = {
  /** Why an event is passed over: it is about what this home wrote. Undefined for all others. */
  readonly ownDetail: (payload: unknown) => string | undefined
  /** Until when an event of Slack may be one about a message whose name is not known yet. */
  readonly posted: OwnMessages['posted']
}

export const createLoopGuard = (
  { isOwnComment }: Pick<CommentMarks, 'isOwnComment'>,
  { isOwnMessage, posted }: Pick<OwnMessages, 'isOwnMessage' | 'posted'>,
): LoopGuard => ({
  ownDetail: (payload) => {
    if (isOwnComment(payload)) return ownCommentDetail
    return isOwnMessage(payload) ? ownMessageDetail : undefined
  },
  posted,
})
