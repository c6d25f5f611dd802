import { setTimeout as delay } from 'node:timers/promises'
import { describeFeed } from '../../../shared/sources/feed.ts'
import { toStatusProblem } from '../../../shared/errors.ts'
import { valueAt } from '../../util/payload-path.ts'
import {
  giveToAll,
  type Source,
  SourceFault,
  type SourceServices,
  type SourceStatus,
  toPause,
} from '../source.ts'
import { type BotToken, callBot } from './bot-api.ts'
import { type Offsets, toBotId } from './offsets.ts'
import { findPress, type TelegramPress } from './press.ts'

/*
 * The story of the updates of a bot (core.telegram.org/bots/api#getupdates):
 *
 *   getUpdates, which waits up to 50 s -> each update: from somebody who may -> the queue has it
 *     -> the offset on the disk -> getUpdates with that offset, by which Telegram forgets what is below
 *
 * Telegram keeps what was not taken for 24 hours, so nothing is lost while the machine sleeps.
 */

export type TelegramSourceParts = SourceServices & {
  readonly apiUrl: string
  readonly token: BotToken
  readonly offsets: Offsets
  /** A press of one of our own buttons. */
  readonly pressed: (press: TelegramPress) => Promise<void>
}

const waitSeconds = 50
const atMost = 100
/** Longer than Telegram waits. */
const timeoutMs = (waitSeconds + 15) * 1000

export class TelegramSource implements Source {
  readonly #parts: TelegramSourceParts
  readonly #control = new AbortController()
  #running: Promise<void> = Promise.resolve()
  #state: SourceStatus['state'] = 'connecting'
  #since: number | undefined
  #lastEvent: number | undefined
  #fault: SourceFault | undefined
  #failures = 0
  /** Updates of people who are not in `from`. */
  #ignored = 0

  constructor(parts: TelegramSourceParts) {
    this.#parts = parts
  }

  start(): void {
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#control.abort()
    await this.#running
  }

  status(): SourceStatus {
    return {
      how: describeFeed('telegram'),
      state: this.#state,
      ...(this.#state === 'connected' && { since: toTime(this.#since) }),
      ...(this.#lastEvent !== undefined && { lastEventAt: toTime(this.#lastEvent) }),
      ...(this.#ignored > 0 && { ignored: this.#ignored }),
      ...(this.#fault && { problem: toStatusProblem(this.#fault, 'doorward help telegram') }),
    }
  }

  async #run(): Promise<void> {
    const { signal } = this.#control
    const { now, offsets, token, tell } = this.#parts
    const bot = toBotId(token.token)
    let offset = await offsets.get(bot)
    while (!signal.aborted) {
      try {
        const updates = await this.#read(offset)
        if (this.#state !== 'connected') this.#since = now()
        this.#state = 'connected'
        this.#fault = undefined
        this.#failures = 0
        const next = await this.#takeAll(updates)
        if (next !== undefined) await offsets.set(bot, (offset = next))
        // The queue is full, or another process takes over.
        const last = valueAt(updates.at(-1), ['update_id'])
        if (updates.length > 0 && next !== Number(last) + 1) await this.#pause(toPause(1))
      } catch (error) {
        if (signal.aborted) return
        const fault =
          error instanceof SourceFault
            ? error
            : new SourceFault('the offset of the updates cannot be written', {
                hint: 'check the disk, and the folder state of the home',
              })
        if (fault.isFinal) {
          this.#state = 'failed'
          this.#fault = fault
          return tell(fault)
        }
        this.#failures += 1
        this.#state = 'waiting'
        // After a restart the earlier process may still ask once.
        if (this.#failures > 1) this.#fault = fault
        await this.#pause(toPause(this.#failures, fault.retryAfterMs))
      }
    }
  }

  /** The first answer after a start or a fault comes immediately. */
  async #read(offset: number | undefined): Promise<readonly unknown[]> {
    const { apiUrl, token } = this.#parts
    const { signal } = this.#control
    const body = {
      ...(offset !== undefined && { offset }),
      limit: atMost,
      timeout: this.#state === 'connected' ? waitSeconds : 0,
      // Telegram keeps nothing else; without the list an earlier one would count.
      allowed_updates:
        this.#parts.webhooks().length > 0 ? ['message', 'callback_query'] : ['callback_query'],
    }
    const result = await callBot(apiUrl, token, 'getUpdates', body, { signal, timeoutMs })
    if (!Array.isArray(result)) throw new SourceFault('the response is not from Telegram')
    return result as readonly unknown[]
  }

  /** The number after the last update that was taken, in order; undefined where none was. */
  async #takeAll(updates: readonly unknown[]): Promise<number | undefined> {
    let next: number | undefined
    for (const update of updates) {
      const id = valueAt(update, ['update_id'])
      if (typeof id !== 'number' || !Number.isSafeInteger(id)) continue
      if (this.#control.signal.aborted || !this.#parts.isServing()) return next
      if (!(await this.#take(update))) return next
      next = id + 1
    }
    return next
  }

  async #take(update: unknown): Promise<boolean> {
    const press = findPress(update)
    if (press?.buttonId !== undefined) {
      this.#lastEvent = this.#parts.now()
      await this.#parts.pressed(press)
      return true
    }
    const from = valueAt(update, ['message', 'from', 'id']) ?? press?.userId
    const meant = this.#parts.webhooks().filter((webhook) => mayStart(webhook.feed, from))
    if (meant.length === 0) {
      this.#ignored += 1
      return true
    }
    this.#lastEvent = this.#parts.now()
    const isTaken = await giveToAll(
      { rawHeaders: jsonHeaders, bytes: Buffer.from(JSON.stringify(update)), source: 'telegram' },
      { ...this.#parts, webhooks: () => meant },
    )
    // Otherwise the button of the app spins.
    if (press && isTaken) await this.#parts.pressed(press)
    return isTaken
  }

  async #pause(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#control.signal }).catch(() => undefined)
  }
}

const jsonHeaders = ['content-type', 'application/json']

const mayStart = (
  feed: { readonly kind: string; readonly from?: readonly number[] } | undefined,
  id: unknown,
): boolean => typeof id === 'number' && (feed?.from?.includes(id) ?? false)

const toTime = (ms = 0): string => new Date(ms).toISOString()
