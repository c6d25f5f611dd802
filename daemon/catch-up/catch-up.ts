import { networkInterfaces } from 'node:os'
import type { StatusProblem } from '../../shared/api/api.ts'
import type { CatchUpRequest, CaughtUp, MissedHook } from '../../shared/api/hooks.ts'
import { DoorwardError, toStatusProblem } from '../../shared/errors.ts'
import { isFinal } from '../events/event-record.ts'
import type { Log } from '../log/log.ts'
import { knownError } from '../util/assets.ts'
import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import type { Engine } from '../webhook/engine.ts'
import { type CaughtUpWebhook, type HookServices, MissedHookReader } from './hook-reader.ts'
import { Journal } from './journal.ts'
import { hasEvent, isThrough } from './past-deliveries.ts'

const tickMs = 30_000

type Services = Pick<HookServices, 'open' | 'accept' | 'events' | 'isServing' | 'signal'> & {
  readonly journalFile: string
  readonly current: () => Pick<Engine, 'byPath'>
  readonly log: Pick<Log, 'warn'>
  readonly now?: () => number
  readonly isOnline?: () => boolean
}

/**
 * Deliveries that did not arrive, as the machine or its tunnel was off: GitHub sends nothing again. The list
 * of the sender is read at start, after sleep, when the network is back, and every hour. Missing deliveries wait
 * for the owner, or run, as `catch_up` says.
 */
export class CatchUp {
  readonly #services: Services
  readonly #readers = new Map<string, MissedHookReader>()
  readonly #now: () => number
  #journal: Journal | undefined
  #journalProblem: DoorwardError | undefined
  #lastTickMs = 0
  /** For a reading that is due before the next tick. */
  #early: NodeJS.Timeout | undefined
  #isStarted = false
  #wasOnline = true
  /** One at a time: two readings or runs would take the same deliveries. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(services: Services) {
    const { events, now = Date.now } = services
    this.#services = services
    this.#now = now
    events.follow(({ record }) => {
      const { webhook: path, deliveryId } = record
      if (path === null || deliveryId === undefined) return
      const webhook = services.current().byPath.get(path)
      if (!webhook || !isCaughtUp(webhook)) return
      const { source } = webhook
      if (isThrough(events, record)) this.#write((journal) => journal.finish(source, [deliveryId]))
      else if (!isFinal(record.state)) this.#write((journal) => journal.take(source, deliveryId))
    })
  }

  async start(): Promise<void> {
    await this.#openJournal()
    this.#lastTickMs = this.#now()
    const timer = setInterval(() => void this.tick(), tickMs).unref()
    this.#isStarted = true
    const stop = () => {
      clearInterval(timer)
      clearTimeout(this.#early)
    }
    this.#services.signal.addEventListener('abort', stop, { once: true })
    void this.tick()
  }

  /** Reads the hooks that are due. */
  async tick(): Promise<void> {
    const now = this.#now()
    const isOnline = (this.#services.isOnline ?? hasNetwork)()
    const isJump = Math.abs(now - this.#lastTickMs) > 3 * tickMs
    if (isJump || (isOnline && !this.#wasOnline))
      for (const reader of this.#readers.values()) reader.wake()
    this.#lastTickMs = now
    this.#wasOnline = isOnline
    await this.#inTurn(async () => this.#readDue()).catch((error: unknown) => {
      if (this.#services.signal.aborted) return
      this.#services.log.warn({ code: knownError(error).code }, 'deliveries could not be caught up')
    })
    this.#planEarly()
  }

  #planEarly(): void {
    clearTimeout(this.#early)
    if (!this.#isStarted || this.#services.signal.aborted) return
    const waits = this.#hooks().map(({ dueMs }) => dueMs - this.#now())
    const waitMs = Math.min(...waits.filter((ms) => ms > 0))
    if (waitMs < tickMs) this.#early = setTimeout(() => void this.tick(), waitMs).unref()
  }

  /** Lists missing deliveries. `isFresh` asks the senders first. Throws why the journal cannot be read. */
  async list(isFresh: boolean): Promise<MissedHook[]> {
    if (isFresh)
      await this.#inTurn(async () => {
        for (const reader of this.#hooks()) reader.wake()
        await this.#readDue()
      })
    if (this.#journalProblem) throw this.#journalProblem
    return this.#hooks().map((reader) => reader.describe())
  }

  /** Runs or forgets what waits. Throws `webhook-not-found`. */
  async decide({ do: what, path }: CatchUpRequest): Promise<CaughtUp> {
    const readers = this.#hooks(path)
    if (path !== undefined && readers.length === 0)
      throw new DoorwardError('webhook-not-found', `no deliveries are caught up for ${path}`, {
        hint: 'doorward webhook hooks',
        about: { webhook: path },
      })
    return this.#inTurn(async () => {
      let all: CaughtUp = { run: 0, skipped: 0, refused: 0, waiting: 0 }
      for (const reader of readers) {
        const one = await reader.decide(what)
        const problem = one.problem ?? all.problem
        all = {
          run: all.run + one.run,
          skipped: all.skipped + one.skipped,
          refused: all.refused + one.refused,
          waiting: all.waiting + one.waiting,
          ...(problem !== undefined && { problem }),
        }
      }
      return all
    })
  }

  /** Stripe retries for three days. Elsewhere a repeat is a person's deliberate redelivery. */
  readonly isCaughtUp = ({ path, source }: CompiledWebhook, deliveryId: string): boolean => {
    if (source?.provider !== 'stripe' || !this.#journal?.isFinished(source, deliveryId))
      return false
    // The usual checks decide while the daemon remembers its event, which may have failed.
    return !hasEvent(this.#services.events, path, deliveryId)
  }

  problems(): StatusProblem[] {
    const own = this.#journalProblem
    return [
      ...(own ? [toStatusProblem(own, 'doorward events missed')] : []),
      ...this.#hooks().flatMap((reader) => reader.problems()),
    ]
  }

  async #readDue(): Promise<void> {
    await this.#openJournal()
    for (const reader of this.#hooks()) if (this.#journal) await reader.catchUp(this.#journal)
  }

  /** The hooks of the current configuration, or those of one webhook. */
  #hooks(path?: string): MissedHookReader[] {
    return this.#webhooks()
      .filter((webhook) => (path ?? webhook.path) === webhook.path)
      .map((webhook) => {
        const { provider, repository, hookId } = webhook.source
        const key = [webhook.path, provider, repository, hookId].join(' ')
        const reader = this.#readers.get(key) ?? this.#createReader(webhook)
        this.#readers.set(key, reader)
        return reader.use(webhook)
      })
  }

  #webhooks(): CaughtUpWebhook[] {
    return [...new Set(this.#services.current().byPath.values())].filter(isCaughtUp)
  }

  #createReader(webhook: CaughtUpWebhook): MissedHookReader {
    const { isServing, signal, events } = this.#services
    const services: HookServices = {
      ...this.#services,
      isServing: () => isServing() && !signal.aborted,
      finish: (source, ids) => this.#write((journal) => journal.finish(source, ids)),
      tell: (detail) => void events.add(new Date(), { kind: 'daemon', state: 'done', detail }),
      now: this.#now,
    }
    return new MissedHookReader(services, webhook)
  }

  async #openJournal(): Promise<void> {
    if (this.#journal || this.#webhooks().length === 0) return
    try {
      this.#journal = await Journal.open(this.#services.journalFile)
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
      this.#services.log.warn(
        { code: knownError(error).code },
        'catch-up cannot write which deliveries are finished',
      )
    }
  }

  async #inTurn<Value>(work: () => Promise<Value>): Promise<Value> {
    const result = this.#turn.then(work)
    this.#turn = result.catch(() => undefined)
    return result
  }
}

const isCaughtUp = (webhook: CompiledWebhook): webhook is CaughtUpWebhook =>
  webhook.source !== undefined && webhook.catchUp !== undefined

const hasNetwork = (): boolean =>
  Object.values(networkInterfaces()).some((addresses) =>
    addresses?.some(({ internal }) => !internal),
  )
