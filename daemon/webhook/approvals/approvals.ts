import type { Approval, EventRecord, StatusProblem } from '../../../shared/api/api.ts'
import { splitPlace } from '../../../shared/approve/approve.ts'
import { withDeadline } from '../../../shared/deadline.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { isFinal } from '../../events/event-record.ts'
import { type EventStore, eventNotFound } from '../../events/event-store.ts'
import type { Log } from '../../log/log.ts'
import type { Succession } from '../../restart/succession.ts'
import { longTimeout } from '../../util/concurrency.ts'
import type { Engine } from '../engine.ts'
import type { AcceptedEvent, RetryableEvents } from '../events/accepted-event.ts'
import { runWithRemark } from '../events/control.ts'
import type { KeptPayloads } from '../events/kept-payloads.ts'
import type { RunEvent } from '../events/runner.ts'
import type { ChatApprovals } from './chat.ts'
import { mismatch, requireSameRule } from './hold-back.ts'
import { type QuestionRecords, Questions } from './questions.ts'
import { withoutComments } from './without-comments.ts'

/*
 * The answers of people to what waits:
 *
 *   waiting -> approved: rendered again, the same, queued for its delivery
 *           -> declined, expired: nothing is sent
 *           -> again: the agent runs once more, with the remark of the owner
 *
 * The first answer counts. The record in memory is the truth; messages and buttons are views of it.
 */

/** Who answers, and from where. */
export type Answerer = Pick<Approval, 'by' | 'where'>

type ApprovalsParts = {
  readonly events: EventStore
  readonly kept: RetryableEvents<AcceptedEvent>
  readonly current: () => Engine
  readonly payloads: KeptPayloads
  readonly questions: QuestionRecords
  readonly succession: Pick<Succession, 'awaitSuccessor'>
  readonly hasTray: () => boolean
  readonly log: Log
}

type Waiting = {
  readonly id: string
  readonly approval: Approval
  readonly event: AcceptedEvent
  readonly answer: string
}

export class Approvals implements ChatApprovals {
  readonly #parts: ApprovalsParts
  readonly connect: ChatApprovals['connect']
  readonly press: ChatApprovals['press']
  readonly #questionsClosed: () => Promise<void>
  /** Those whose answer is being checked. */
  readonly #answering = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(parts: ApprovalsParts) {
    this.#parts = parts
    const { connect, press, closed } = new Questions({
      ...parts,
      send: async (id, by, digest) => this.approve(id, by, [], digest),
      decline: async (id, by, digest) => this.reject(id, by, digest),
      describe: describeAnswer,
    })
    this.connect = connect
    this.press = press
    this.#questionsClosed = closed
    parts.events.follow(({ record, before }) => {
      if (record.state === 'waiting' || before === 'waiting') this.#schedule()
    })
  }

  /** The events that wait, the oldest first. */
  list(): EventRecord[] {
    return this.#parts.events.list({ limit: maxListed, state: 'waiting' }).toReversed()
  }

  /** Answers that wait though no one was asked about them. */
  problems(): StatusProblem[] {
    const unasked = this.list().filter((record) => !this.#isAsked(record))
    const [first] = unasked
    if (!first) return []
    const detail =
      unasked.length === 1
        ? `event ${first.id} waits for an approval, and no one was asked`
        : `${unasked.length} events wait for an approval, and no one was asked`
    const hint = `doorward events show ${first.id}; start the tray, or name a chat in approve.by`
    return [{ code: 'approval-unasked', detail, hint, about: { event: first.id } }]
  }

  #isAsked({ id: eventId, approval }: EventRecord): boolean {
    const { asked = [], askedAt = '' } = approval ?? {}
    return asked.some((place) => {
      const [kind, address] = splitPlace(place)
      if (kind === 'desktop') return this.#parts.hasTray()
      if (kind !== 'slack' && kind !== 'telegram') return true
      const question = this.#parts.questions.get({ eventId, kind, address })
      return question && (question.message || Date.now() - Date.parse(askedAt) < askingMs)
    })
  }

  /** After a restart: what waited goes on waiting. */
  resume(): void {
    this.#schedule()
  }

  /**
   * Sends the answer, without the comments at these places. `shown` is the beginning of the digest of the answer that
   * the person has read, where that may be an older one. Throws `event-not-found`, `event-not-waiting`,
   * `request-invalid`, `approval-mismatch`, `queue-full` or `stopping`.
   */
  async approve(
    id: string,
    by: Answerer,
    without: readonly number[] = [],
    shown?: string,
  ): Promise<EventRecord> {
    return this.#answer(id, shown, async ({ event, answer, approval }) => {
      const { runEvent } = this.#parts.current()
      const text = without.length === 0 ? answer : withoutComments(answer, without)
      const approved = await this.#requireSame(id, event, answer, approval, runEvent)
      const sent = text === answer ? approved : await runEvent.render(id, event, text)
      this.#requireOpen(id)
      const { digest, digests, previews } = sent
      runEvent.send(id, { ...event, approved: digests }, text, {
        approval: { ...approval, state: 'approved', digest, ...by },
      })
      if (text !== answer) this.#parts.events.update(id, {}, { result: text, previews })
      this.#log(id, 'approved', by)
    })
  }

  /** Ends the event: nothing is sent. Throws as `approve`. */
  async reject(id: string, by: Answerer, shown?: string): Promise<EventRecord> {
    return this.#answer(id, shown, ({ event, approval }) => {
      this.#end(id, event, {
        state: 'declined',
        approval: { ...approval, state: 'declined', ...by },
      })
      this.#log(id, 'declined', by)
    })
  }

  /** Runs the agent once more, with the words of the owner. Throws as `approve`, and `event-not-retryable`. */
  async again(id: string, by: Answerer, remark: string, shown?: string): Promise<EventRecord> {
    return this.#answer(id, shown, () => {
      runWithRemark(id, remark, this.#parts.current(), this.#parts)
      this.#log(id, 'again', by)
    })
  }

  /** Sends the answer of a dry run after all. Throws `event-not-found`, `event-not-retryable`, or as `approve`. */
  async deliver(id: string): Promise<EventRecord> {
    const { events, kept, current } = this.#parts
    await this.#requireServing()
    const { state, targets, result } = events.get(id) ?? missing()
    if (state !== 'done' || !targets.some((target) => target.state === 'previewed'))
      throw new DoorwardError('event-not-retryable', 'nothing of this event was held back', {
        hint: `doorward events show ${id}`,
      })
    const known = kept.get(id)
    if (!known || result === undefined) throw forgotten()
    this.#claim(id)
    try {
      const { runEvent } = current()
      // The rule may be no dry run any more; the targets are those of the event.
      const event = { ...known, leaving: this.#ruleOf(known)?.leaving }
      const { digests } = await runEvent.render(id, event, result)
      runEvent.send(id, { ...event, approved: digests }, result, {})
    } finally {
      this.#answering.delete(id)
    }
    return events.record(id) ?? missing()
  }

  /** Cancels an event that waits; false for any other. */
  cancel(id: string): boolean {
    const { events, kept, current } = this.#parts
    const event = kept.get(id)
    if (events.record(id)?.state !== 'waiting' || !event) return false
    current().runEvent.endUnsent(id, event, {
      state: 'dropped',
      stage: 'deliver',
      code: 'event-cancelled',
      detail: 'it was cancelled while it waited for an approval',
    })
    return true
  }

  /** The daemon stops: what waits is lost with its memory. Resolves when the chats say so too. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    const { kept, current, log } = this.#parts
    for (const { id } of this.list()) {
      const event = kept.get(id)
      if (!event) continue
      log.warn({ event: id }, 'an answer that waited for an approval is lost')
      current().runEvent.endUnsent(id, event, {
        state: 'dropped',
        stage: 'deliver',
        code: 'event-dropped',
        detail:
          'the daemon stopped while its answer waited for an approval: deliver it again from the sender',
      })
    }
    await withDeadline(farewellMs, this.#questionsClosed(), () => undefined)
  }

  /** Another process goes on with what waits. */
  release(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  async #answer(
    id: string,
    shown: string | undefined,
    act: (waiting: Waiting) => void | Promise<void>,
  ): Promise<EventRecord> {
    const { events, kept } = this.#parts
    await this.#requireServing()
    if (!events.record(id)) throw eventNotFound()
    this.#requireOpen(id)
    const { approval, result: answer } = events.get(id) ?? missing()
    const event = kept.get(id)
    if (!event || !approval || answer === undefined) throw forgotten()
    if (shown !== undefined && !approval.digest.startsWith(shown))
      throw notWaiting('you have seen an older answer', id)
    this.#claim(id)
    try {
      await act({ id, approval, event, answer })
    } finally {
      this.#answering.delete(id)
    }
    return events.record(id) ?? missing()
  }

  /** True where another process goes on with what waits; waits while that is being decided. */
  async #isReplaced(): Promise<boolean> {
    const { succession } = this.#parts
    return this.#isClosed || (await succession.awaitSuccessor()) !== undefined
  }

  async #requireServing(): Promise<void> {
    if (await this.#isReplaced())
      throw new DoorwardError('stopping', 'the daemon is being restarted or stopped', {
        hint: 'answer again in a moment',
      })
  }

  /** Throws where someone was first. */
  #claim(id: string): void {
    if (this.#answering.has(id)) throw notWaiting('another answer came first')
    this.#answering.add(id)
  }

  /** Throws `event-not-waiting` with who has answered. An approval that is too late never counts. */
  #requireOpen(id: string): void {
    const { state, approval } = this.#parts.events.record(id) ?? missing()
    if (state === 'waiting' && approval && Date.parse(approval.expiresAt) <= Date.now())
      this.#expire(id, approval)
    const now = this.#parts.events.record(id) ?? missing()
    if (now.state !== 'waiting') throw notWaiting(describeAnswer(now), id)
  }

  async #requireSame(
    id: string,
    event: AcceptedEvent,
    answer: string,
    { digest }: Approval,
    runEvent: RunEvent,
  ) {
    try {
      requireSameRule(event, this.#ruleOf(event)?.leaving)
      const rendered = await runEvent.render(id, event, answer)
      if (rendered.digest === digest) return rendered
      throw mismatch('what would be sent now differs from what was shown')
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      const { code, message: detail } = error
      this.#end(id, event, { state: 'failed', stage: 'deliver', code, detail })
      throw error
    }
  }

  #ruleOf({ webhook: { path }, known }: AcceptedEvent) {
    const { byPath } = this.#parts.current()
    return byPath.get(path)?.rules.find(({ name }) => name === known.rule)
  }

  #end(id: string, event: AcceptedEvent, changes: Parameters<RunEvent['endUnsent']>[2]): void {
    this.#parts.current().runEvent.endUnsent(id, event, changes)
  }

  #expire(id: string, approval: Approval): void {
    const event = this.#parts.kept.get(id)
    const changes = {
      state: 'expired',
      detail: 'no one answered in time: nothing was sent',
      approval: { ...approval, state: 'expired' },
    } as const
    if (event) this.#end(id, event, changes)
    else this.#parts.events.update(id, changes)
    this.#log(id, 'expired', {})
  }

  /** One timer, for the first that expires. */
  #schedule(): void {
    clearTimeout(this.#timer)
    if (this.#isClosed) return
    const times = this.list().map(({ approval }) => Date.parse(approval?.expiresAt ?? ''))
    if (times.length === 0) return
    this.#timer = longTimeout(
      () => void this.#expireDue(),
      Math.max(0, Math.min(...times) - Date.now()),
    )
    this.#timer.unref()
  }

  async #expireDue(): Promise<void> {
    if (await this.#isReplaced()) return
    for (const { id, approval } of this.list())
      if (approval && Date.parse(approval.expiresAt) <= Date.now() && !this.#answering.has(id))
        this.#expire(id, approval)
    this.#schedule()
  }

  #log(id: string, how: string, { by, where }: Answerer): void {
    this.#parts.log.info({ event: id, approval: how, by, where }, 'approval')
  }
}

const maxListed = 1000
/** A chat that has not taken a question after this time has not asked it. */
const askingMs = 30_000
/** A chat that does not answer must not keep the daemon. */
const farewellMs = 3000

const missing = (): never => {
  throw eventNotFound()
}

const forgotten = (): DoorwardError =>
  new DoorwardError('event-not-retryable', 'its answer is no longer in memory', {
    hint: 'deliver it again from the sender, if the sender can do that',
  })

const notWaiting = (why: string, id?: string): DoorwardError =>
  new DoorwardError('event-not-waiting', `this event does not wait for an approval: ${why}`, {
    ...(id !== undefined && { hint: `doorward events show ${id}` }),
  })

/** `approved by owner (cli)` */
export const describeAnswer = ({ state, approval, detail }: EventRecord): string => {
  if (!approval)
    return isFinal(state) ? `it is ${state}` : `it is ${state}, and was not asked about`
  const { state: answer, by, where } = approval
  if (answer === 'waiting') return (isFinal(state) ? detail : undefined) ?? `it is ${state}`
  return by === undefined ? answer : `${answer} by ${by}${where === undefined ? '' : ` (${where})`}`
}
