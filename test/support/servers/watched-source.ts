import { EventEmitter, once } from 'node:events'
import type { DoorwardError } from '../../../shared/errors.ts'
import type { Source } from '../../../daemon/sources/source.ts'
import type { CompiledWebhook } from '../../../daemon/webhook/compiled-webhook.ts'
import type { FetchedDelivery } from '../../../daemon/webhook/pipeline.ts'

type Payload = Record<string, unknown>

/** What a source gives, in place of the pipeline of a daemon. */
export class Taker {
  readonly #changed = new EventEmitter().setMaxListeners(0)
  readonly taken: FetchedDelivery[] = []
  readonly told: DoorwardError[] = []
  /** What the queue answers next, instead of taking it. */
  readonly refusals: Error[] = []
  nowMs = Date.now()
  serving = true
  webhook = { path: '/chat', feed: undefined } as unknown as CompiledWebhook

  readonly services = {
    webhooks: () => [this.webhook],
    accept: async (delivery: FetchedDelivery) => {
      const refusal = this.refusals.shift()
      if (refusal) throw refusal
      this.taken.push(delivery)
      this.#changed.emit('taken')
    },
    isServing: () => this.serving,
    tell: (fault: DoorwardError) => {
      this.told.push(fault)
      this.#changed.emit('told')
    },
    now: () => this.nowMs,
  }

  payloads(): Payload[] {
    return this.taken.map(({ bytes }) => JSON.parse(bytes.toString()) as Payload)
  }

  async untilTaken(count: number): Promise<void> {
    while (this.taken.length < count) await once(this.#changed, 'taken')
  }

  async untilTold(): Promise<DoorwardError> {
    for (;;) {
      const [fault] = this.told
      if (fault) return fault
      await once(this.#changed, 'told')
    }
  }
}

/** Resolves once the source is in this state: it has no events of its own. */
export const untilState = async (source: Source, state: string): Promise<void> => {
  while (source.status().state !== state) await new Promise((resolve) => setTimeout(resolve, 2))
}
