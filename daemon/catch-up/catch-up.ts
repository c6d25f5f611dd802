import { networkInterfaces } from 'node:os'
import type { StatusProblem } from '../../shared/api.ts'
import type { CatchUpRequest, CaughtUp, MissedHook } from '../../shared/api-missed.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import type { PastDelivery, PastApi } from '../sender-apis/sender-api.ts'
import { knownError } from '../util/assets.ts'
import { isFinal } from '../events/event-record.ts'
import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import type { Engine } from '../webhook/engine.ts'
import type { FetchedDelivery } from '../webhook/pipeline.ts'
import { toEventName } from '../webhook/rules/choose.ts'
import { HookReader, isThrough, type ReadWebhook, toLocalTime } from './hook-reader.ts'
import { Journal } from './journal.ts'

const tickMs = 30_000
const hint = 'doorward events missed'

export type CatchUpParts = {
  readonly journalFile: string
  readonly current: () => Pick<Engine, 'byPath'>
  readonly open: (source: ReadWebhook['source']) => PastApi
  /** Throws why the webhook refuses it. */
  readonly accept: (delivery: FetchedDelivery, webhook: CompiledWebhook) => Promise<unknown>
  readonly events: EventStore
  readonly log: Pick<Log, 'warn'>
  /** False once another process serves. */
  readonly isServing: () => boolean
  /** Aborted once the daemon stops. */
  readonly signal: AbortSignal
  readonly now?: () => number
  readonly isOnline?: () => boolean
}

type CaughtUpWebhook = CompiledWebhook & ReadWebhook

/**
 * Deliveries that did not arrive, as the machine or its tunnel was off: GitHub sends nothing again. The list
 * of the sender is read at start, after sleep, when the network is back, and every hour. What is missing waits
 * for the owner, or runs, as `catch_up` says.
 */
export class CatchUp {
  readonly #parts: CatchUpParts
  readonly #readers = new Map<string, HookReader>()
  #journal: Journal | undefined
  #journalProblem: DoorwardError | undefined
  #timer: NodeJS.Timeout | undefined
  #lastTickMs = 0
  #wasOnline = true
  /** One at a time: two readings or runs would take the same deliveries. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(parts: CatchUpParts) {
    this.#parts = parts
    parts.events.follow(({ record }) => {
      const { webhook: path, deliveryId } = record
      if (path === null || deliveryId === undefined) return
      const source = this.#find(path)?.source
      if (!source) return
      if (isThrough(parts.events, record))
        this.#write((journal) => journal.finish(source, [deliveryId]))
      else if (!isFinal(record.state)) this.#write((journal) => journal.take(source, deliveryId))
    })
  }

  async start(): Promise<void> {
    await this.#openJournal()
    this.#lastTickMs = this.#now()
    this.#timer = setInterval(() => void this.tick(), tickMs).unref()
    this.#parts.signal.addEventListener('abort', () => clearInterval(this.#timer), { once: true })
    void this.tick()
  }

  /** Reads the hooks that are due. */
  async tick(): Promise<void> {
    const now = this.#now()
    const isOnline = (this.#parts.isOnline ?? hasNetwork)()
    const isJump = Math.abs(now - this.#lastTickMs) > 3 * tickMs
    if (isJump || (isOnline && !this.#wasOnline))
      for (const reader of this.#readers.values()) reader.wake()
    this.#lastTickMs = now
    this.#wasOnline = isOnline
    await this.#inTurn(async () => this.#readDue()).catch((error: unknown) => {
      if (this.#parts.signal.aborted) return
      this.#parts.log.warn({ code: knownError(error).code }, 'deliveries could not be caught up')
    })
  }

  /** What is missing. With `isFresh` the senders are asked first. Throws why what is finished is not known. */
  async list(isFresh: boolean): Promise<MissedHook[]> {
    if (isFresh)
      await this.#inTurn(async () => {
        for (const webhook of this.#webhooks()) this.#readerOf(webhook).wake()
        await this.#readDue()
      })
    if (this.#journalProblem) throw this.#journalProblem
    return this.#webhooks().map((webhook) => {
      const { waiting, problem, leftOut } = this.#readerOf(webhook)
      const { provider, repository } = webhook.source
      return {
        path: webhook.path,
        provider,
        repository,
        mode: webhook.catchUp.mode,
        waiting: waiting.map(({ deliveryId, at, event, action, answer }) => ({
          deliveryId,
          at,
          event: toEventName({ event, action }),
          answer,
        })),
        ...(leftOut !== undefined && { leftOut }),
        ...(problem && { problem: problem.message }),
        ...(problem?.hint !== undefined && { hint: problem.hint }),
      }
    })
  }

  /** Runs or forgets what waits. Throws `webhook-not-found`. */
  async decide({ do: what, path }: CatchUpRequest): Promise<CaughtUp> {
    const webhooks = this.#webhooks().filter((webhook) => (path ?? webhook.path) === webhook.path)
    if (path !== undefined && webhooks.length === 0)
      throw new DoorwardError('webhook-not-found', `no deliveries are caught up for ${path}`, {
        hint: 'doorward webhook hooks',
      })
    return this.#inTurn(async () => {
      const results: CaughtUp[] = []
      for (const webhook of webhooks) {
        const reader = this.#readerOf(webhook)
        reader.leftOut = undefined
        results.push(
          what === 'run'
            ? await this.#run(webhook, reader.waiting)
            : this.#skip(webhook, reader.waiting),
        )
      }
      return sum(results)
    })
  }

  /** Of Stripe, which sends again for three days. Elsewhere only a person does, who means it. */
  readonly isCaughtUp = ({ path, source }: CompiledWebhook, deliveryId: string): boolean => {
    if (source?.provider !== 'stripe' || !this.#journal?.isFinished(source, deliveryId))
      return false
    // What the daemon still knows is handled as ever: it may have failed.
    return !this.#isKnown(path, deliveryId)
  }

  problems(): StatusProblem[] {
    const own = this.#journalProblem
    return [
      ...(own ? [{ code: own.code, detail: own.message, hint: own.hint ?? hint }] : []),
      ...this.#webhooks().flatMap((webhook) => {
        const { waiting: all, held, problem, off, leftOut } = this.#readerOf(webhook)
        const waiting = all.filter(({ deliveryId }) => held.has(deliveryId))
        const { repository } = webhook.source
        const what = problem === off ? repository : `the deliveries of ${repository} cannot be read`
        const detail = `${what}: ${problem?.message}`
        return [
          ...(waiting.length > 0
            ? [{ code: 'deliveries-missed', detail: describe(waiting, repository), hint }]
            : []),
          ...(leftOut === undefined
            ? []
            : [{ code: 'deliveries-unread', detail: `${repository} had ${leftOut}`, hint }]),
          ...(problem ? [{ code: 'deliveries-unread', detail, hint: problem.hint ?? hint }] : []),
        ]
      }),
    ]
  }

  async #readDue(): Promise<void> {
    await this.#openJournal()
    for (const webhook of this.#webhooks()) {
      const journal = this.#journal
      const reader = this.#readerOf(webhook)
      if (!journal || !this.#isServing() || !reader.isDue(this.#now())) continue
      const { events, signal } = this.#parts
      const context = { journal, events, nowMs: this.#now() }
      const { leftOut } = reader
      const more = await reader.read(webhook, this.#parts.open(webhook.source), context, signal)
      if (reader.leftOut !== leftOut)
        this.#tell(`${webhook.source.repository} had ${reader.leftOut}`)
      if (webhook.catchUp.everyMs !== undefined && !reader.isAwakening) {
        const due = reader.waiting.filter(({ deliveryId }) => !reader.held.has(deliveryId))
        if (due.length > 0) await this.#run(webhook, due)
        continue
      }
      const isRunAgain = reader.isUnfinished && reader.waiting.length > 0 && !reader.problem
      if (more > 0 || isRunAgain) await this.#handle(webhook, reader.waiting)
      reader.held = new Set(reader.waiting.map(({ deliveryId }) => deliveryId))
    }
  }

  async #handle(webhook: CaughtUpWebhook, waiting: readonly PastDelivery[]): Promise<void> {
    const { source, catchUp } = webhook
    const what = describe(waiting, source.repository)
    if (catchUp.mode === 'ask') return this.#tell(`${what}: ${hint}`)
    const skipped = catchUp.mode === 'newest' ? this.#skip(webhook, waiting.slice(0, -1)) : none
    const ran = await this.#run(webhook, catchUp.mode === 'newest' ? waiting.slice(-1) : waiting)
    const { run, refused, waiting: left, problem } = sum([skipped, ran])
    const counts = [
      `${run} run`,
      ...(skipped.skipped > 0 ? [`${skipped.skipped} left out`] : []),
      ...(refused > 0 ? [`${refused} refused`] : []),
      ...(left > 0 ? [`${left} waiting (${hint})`] : []),
    ]
    this.#tell(`${what}: ${counts.join(', ')}${problem === undefined ? '' : `; ${problem}`}`)
  }

  /** The oldest first, as they would have come. */
  async #run(webhook: CaughtUpWebhook, due: readonly PastDelivery[]): Promise<CaughtUp> {
    const { title, past } = this.#parts.open(webhook.source)
    const reader = this.#readerOf(webhook)
    const gone: PastDelivery[] = []
    let run = 0
    let refused = 0
    let problem: string | undefined
    reader.isUnfinished = false
    for (const delivery of due.slice(0, webhook.catchUp.atMost)) {
      const { id, deliveryId } = delivery
      let fetched: FetchedDelivery | undefined
      try {
        fetched = await past.fetch(webhook.source, id, this.#parts.signal)
        if (!this.#isServing()) break
        const isAccepted = fetched && (await this.#accept(fetched, webhook))
        if (isAccepted) run += 1
        else if (fetched) refused += 1
        else gone.push(delivery)
        // Where its details name another delivery, no event would ever finish this one.
        if (!isAccepted || !this.#isKnown(webhook.path, deliveryId))
          this.#write((journal) => journal.finish(webhook.source, [deliveryId]))
        reader.remove([deliveryId])
      } catch (thrown) {
        const error = knownError(thrown)
        problem = error.message
        reader.isUnfinished = webhook.catchUp.mode !== 'ask'
        if (!fetched) reader.problem = error
        reader.pause(error, this.#now())
        break
      }
    }
    if (gone.length > 0)
      this.#tell(`${describe(gone, webhook.source.repository)}: ${title} has no details any more`)
    return {
      run,
      refused: refused + gone.length,
      skipped: 0,
      waiting: reader.waiting.length,
      ...(problem !== undefined && { problem }),
    }
  }

  #isKnown(path: string, deliveryId: string): boolean {
    const known = this.#parts.events.list({ limit: Infinity, webhook: path })
    return known.some((record) => record.deliveryId === deliveryId)
  }

  /** False when the webhook refuses it for good. Throws where it may take it later. */
  async #accept(fetched: FetchedDelivery, webhook: CompiledWebhook): Promise<boolean> {
    try {
      await this.#parts.accept(fetched, webhook)
      return true
    } catch (error) {
      const passing = ['queue-full', 'rate-limited', 'unavailable', 'stopping']
      if (!(error instanceof DoorwardError) || passing.includes(error.code)) throw error
      return false
    }
  }

  #skip(webhook: CaughtUpWebhook, skipped: readonly PastDelivery[]): CaughtUp {
    const ids = skipped.map(({ deliveryId }) => deliveryId)
    this.#write((journal) => journal.finish(webhook.source, ids))
    this.#readerOf(webhook).remove(ids)
    return { ...none, skipped: ids.length }
  }

  #tell(detail: string): void {
    this.#parts.events.add(new Date(), { kind: 'daemon', state: 'done', detail })
  }

  #webhooks(): CaughtUpWebhook[] {
    return [...new Set(this.#parts.current().byPath.values())].filter(isCaughtUp)
  }

  #find(path: string): CaughtUpWebhook | undefined {
    const webhook = this.#parts.current().byPath.get(path)
    return webhook && isCaughtUp(webhook) ? webhook : undefined
  }

  #readerOf({ path, source }: CaughtUpWebhook): HookReader {
    const key = [path, source.provider, source.repository, source.hookId].join(' ')
    const reader = this.#readers.get(key) ?? new HookReader()
    this.#readers.set(key, reader)
    return reader
  }

  async #openJournal(): Promise<void> {
    if (this.#journal || this.#webhooks().length === 0) return
    try {
      this.#journal = await Journal.open(this.#parts.journalFile)
      this.#journalProblem = undefined
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      this.#journalProblem = error
    }
  }

  /** A full disk must not stop an event; what is not written is read again after a start. */
  #write(write: (journal: Journal) => void): void {
    try {
      if (this.#journal) write(this.#journal)
    } catch (error) {
      this.#parts.log.warn(
        { code: knownError(error).code },
        'catch-up cannot write what is finished',
      )
    }
  }

  async #inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    const result = this.#turn.then(work)
    this.#turn = result.catch(() => undefined)
    return result
  }

  #isServing(): boolean {
    return this.#parts.isServing() && !this.#parts.signal.aborted
  }

  #now(): number {
    return (this.#parts.now ?? Date.now)()
  }
}

const isCaughtUp = (webhook: CompiledWebhook): webhook is CaughtUpWebhook =>
  webhook.source !== undefined && webhook.catchUp !== undefined

const describe = (waiting: readonly PastDelivery[], repository: string): string => {
  const count = waiting.length === 1 ? '1 missed delivery' : `${waiting.length} missed deliveries`
  return `${count} of ${repository} since ${toLocalTime(waiting[0]?.at)}`
}

const none: CaughtUp = { run: 0, skipped: 0, refused: 0, waiting: 0 }

const sum = (results: readonly CaughtUp[]): CaughtUp =>
  results.reduce(
    (all, { run, skipped, refused, waiting, problem = all.problem }) => ({
      run: all.run + run,
      skipped: all.skipped + skipped,
      refused: all.refused + refused,
      waiting: all.waiting + waiting,
      ...(problem !== undefined && { problem }),
    }),
    none,
  )

const hasNetwork = (): boolean =>
  Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ internal }) => !internal),
  )
