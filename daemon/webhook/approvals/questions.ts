import { randomBytes } from 'node:crypto'
import type { EventRecord } from '../../../shared/api/api.ts'
import { splitPlace } from '../../../shared/approve/approve.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { describeWhat } from '../../../shared/event-stages.ts'
import { formatLocalTime, toPlainLine } from '../../../shared/text.ts'
import { toBoldLine, toParts } from '../../delivery/format/parts.ts'
import type { EventStore } from '../../events/event-store.ts'
import type { Log } from '../../log/log.ts'
import { BoundedMap } from '../../util/collections.ts'
import type { AcceptedEvent, RetryableEvents } from '../events/accepted-event.ts'
import type { Chat, ChatApprovals, ChatKind, ChatMessage, ChatPress } from './chat.ts'

/*
 * Questions in chats: a view of the events that wait. `chat.ts` says how a source of a chat takes part.
 */

/** One question in one chat, as it survives a restart. */
type Question = {
  readonly eventId: string
  readonly kind: ChatKind
  readonly address: string
  /** The digest of the answer that was shown. */
  readonly digest: string
  readonly askedAt: string
  /** Ids of the people who may press. */
  readonly who: readonly string[]
  readonly send: string
  readonly decline: string
  readonly message?: ChatMessage
}

/** The newest questions by event and place, answered ones too: a late press is told who was first. */
export class QuestionRecords {
  readonly #questions = new BoundedMap<string, Question>(maxQuestions)

  set(question: Question): void {
    this.#questions.set(toKey(question), question)
  }

  get(place: Pick<Question, 'eventId' | 'kind' | 'address'>): Question | undefined {
    return this.#questions.get(toKey(place))
  }

  all(): readonly Question[] {
    return [...this.#questions].map(([, question]) => question)
  }

  restore(questions: readonly Question[]): void {
    for (const question of questions) this.set(question)
  }
}

const maxQuestions = 1000

const toKey = ({ eventId, kind, address }: Pick<Question, 'eventId' | 'kind' | 'address'>) =>
  `${eventId} ${kind}:${address}`

type Answer = (
  id: string,
  by: { readonly by: string; readonly where: string },
  digest: string,
) => Promise<EventRecord>

type QuestionsParts = {
  readonly events: EventStore
  readonly kept: RetryableEvents<AcceptedEvent>
  readonly questions: QuestionRecords
  readonly send: Answer
  readonly decline: Answer
  /** The end of a question, in a few words. */
  readonly describe: (record: EventRecord) => string
  readonly log: Log
}

export class Questions implements ChatApprovals {
  readonly #parts: QuestionsParts
  readonly #chats = new Map<ChatKind, Chat>()
  readonly #closing = new Set<Promise<void>>()

  constructor(parts: QuestionsParts) {
    this.#parts = parts
    parts.events.follow(({ record, before }) => {
      if (record.kind !== 'webhook' || record.state === before) return
      if (record.state === 'waiting')
        for (const chat of this.#chats.values()) void this.#askIn(chat, record)
      else if (before === 'waiting') void this.#close(record)
    })
  }

  /** Resolves when the messages of the questions that are over say so. */
  readonly closed = async (): Promise<void> => {
    await Promise.all(this.#closing)
  }

  readonly connect = (chat: Chat): (() => void) => {
    this.#chats.set(chat.kind, chat)
    for (const record of this.#parts.events.list({ limit: maxQuestions, state: 'waiting' }))
      void this.#askIn(chat, record)
    return () => {
      if (this.#chats.get(chat.kind) === chat) this.#chats.delete(chat.kind)
    }
  }

  readonly press = async (press: ChatPress): Promise<string> => {
    const { questions, log, send, decline, events, describe } = this.#parts
    const { kind, buttonId, userId, message } = press
    const question = questions
      .all()
      .find((one) => one.send === buttonId || one.decline === buttonId)
    if (!question)
      return 'Nothing changed: this question is no longer known. It was asked again since, or doorward was stopped; see doorward events.'
    const { eventId, who, address, digest } = question
    const where = `${kind}:${address}`
    const isSame =
      question.kind === kind &&
      question.message?.channel === message.channel &&
      question.message.id === message.id
    if (!isSame || !who.includes(userId)) {
      log.warn({ event: eventId, where, user: userId }, 'an answer of someone who may not answer')
      return 'You may not answer this question.'
    }
    try {
      const answer = buttonId === question.send ? send : decline
      return `Done: ${describe(await answer(eventId, { by: userId, where }, digest))}.`
    } catch (error) {
      if (!(error instanceof DoorwardError)) {
        log.error({ event: eventId, error: errorName(error) }, 'internal error')
        return 'Something went wrong inside doorward; see its log.'
      }
      const record = events.record(eventId)
      const why = record && error.code === 'event-not-waiting' ? describe(record) : error.message
      return `Nothing changed: ${why}.`.slice(0, 200)
    }
  }

  async #askIn(chat: Chat, record: EventRecord): Promise<void> {
    const { kept, questions } = this.#parts
    const { id: eventId, approval } = record
    const { by = [], who } = kept.get(eventId)?.leaving?.approve ?? {}
    const { kind } = chat
    for (const place of new Set(by)) {
      const [named, address] = splitPlace(place)
      if (named !== kind || !approval) continue
      const asked = questions.get({ eventId, kind, address })
      const { digest, askedAt } = approval
      // An agent that ran again may give the same answer, which needs a question of its own.
      if (asked?.digest === digest && asked.askedAt === askedAt && asked.message) continue
      const question = {
        eventId,
        kind,
        address,
        digest,
        askedAt,
        who: who?.[kind] ?? [],
        send: newButtonId(),
        decline: newButtonId(),
      }
      await this.#post(chat, question, record)
    }
  }

  async #post(chat: Chat, question: Question, record: EventRecord): Promise<void> {
    const { events, questions, log } = this.#parts
    const { eventId, kind, address, who, send, decline } = question
    const buttons = [
      { label: 'Send', style: 'primary', id: send },
      { label: 'Do not send', style: 'danger', id: decline },
    ] as const
    // Before it is posted: a person may press before the response is here.
    questions.set(question)
    try {
      const text = toQuestion(events, record, kind)
      const message = await chat.ask({
        eventId,
        address,
        text,
        buttons: who.length > 0 ? buttons : [],
      })
      questions.set({ ...question, message })
      const now = events.record(eventId)
      if (now && now.state !== 'waiting') await this.#close(now)
    } catch (error) {
      const why = error instanceof DoorwardError ? error.message : 'something went wrong'
      log.warn({ event: eventId, place: kind, error: errorName(error) }, 'not asked')
      if (events.record(eventId)?.state === 'waiting')
        events.update(eventId, { detail: `not asked at ${kind}:${address}: ${why}` })
    }
  }

  /** Takes the buttons away, and says who has answered. */
  async #close(record: EventRecord): Promise<void> {
    const { questions, describe } = this.#parts
    const time = formatLocalTime(new Date().toISOString())
    const text = `${toBoldLine(describeWhat(record))}\n\n${describe(record)}, ${time}`
    const closing = Promise.all(
      questions.all().map(async ({ eventId, kind, message }) => {
        const chat = this.#chats.get(kind)
        if (eventId !== record.id || !message || !chat) return
        const [shown = ''] = toParts({ kind }, text)
        await chat.update(message, shown).catch(() => undefined)
      }),
    ).then(() => undefined)
    this.#closing.add(closing)
    await closing
    this.#closing.delete(closing)
  }
}

const newButtonId = (): string => randomBytes(16).toString('base64url')

const shownCharacters = 1500

const toQuestion = (events: EventStore, record: EventRecord, kind: ChatKind): string => {
  const { targets = [] } = events.get(record.id) ?? {}
  // The address of an incoming webhook is a secret.
  const names = targets.map(({ target }) => (target.includes('://') ? 'a webhook' : target))
  const [preview = record.resultPreview ?? '', ...others] = targets.flatMap(
    (target) => target.preview || [],
  )
  const isCut = preview.length > shownCharacters
  const hidden = [
    ...(isCut ? [`${preview.length - shownCharacters} more characters`] : []),
    ...(others.length > 0 ? [`the texts of ${others.length} more targets`] : []),
  ]
  // Before the answer, which may say anything.
  const more = hidden.length > 0 ? ` Not shown here: ${hidden.join(', and ')}.` : ''
  const lines = [
    toBoldLine(describeWhat(record)),
    `Send this to ${toPlainLine(names.join(', '))}? (${record.id})${more}`,
    isCut ? `${preview.slice(0, shownCharacters)}…` : preview,
  ]
  return toParts({ kind }, lines.join('\n\n'))[0] ?? ''
}
