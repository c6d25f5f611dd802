import { join } from 'node:path'
import { CatchUp } from '../../../daemon/catch-up/catch-up.ts'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { openPast } from '../../../daemon/sender-apis/hooks.ts'
import {
  type CompiledWebhook,
  headersNamed,
  webhooksByPath,
} from '../../../daemon/webhook/compiled-webhook.ts'
import { getDeliveryId } from '../../../daemon/webhook/read-delivery.ts'
import type { Payload } from '../../../daemon/webhook/body.ts'
import type { FetchedDelivery } from '../../../daemon/webhook/pipeline.ts'
import { temporaryFolder } from '../temporary.ts'
import { check } from './config-files.ts'

const minuteMs = 60_000

/** Catch-up of the webhooks of `webhooks.yaml`, by a clock of its own; its deliveries are only noted. */
const noBots = {
  past: () => {
    throw new Error('there is no bot in this test')
  },
}

export class CaughtUp {
  nowMs = Date.now()
  isOnline = true
  definitions: string
  readonly accepted: FetchedDelivery[] = []
  readonly events = new EventStore(100)
  readonly stop = new AbortController()
  readonly catchUp: CatchUp
  readonly webhooks: () => readonly CompiledWebhook[]
  /** In turn: what the pipeline throws for the next ones. */
  readonly refusals: Error[] = []

  readonly folder: string

  private constructor(folder: string, webhooks: string, gateway: string) {
    this.definitions = webhooks
    this.folder = folder
    const env = { SECRET: 'a secret', KEY: 'rk_test_never_shown' }
    let compiled = { definitions: '', config: check({ webhooks, gateway }) }
    const config = () => {
      const { definitions } = this
      if (compiled.definitions !== definitions)
        compiled = { definitions, config: check({ webhooks: definitions, gateway }) }
      return compiled.config
    }
    const current = () => ({ byPath: webhooksByPath(config(), env) })
    this.webhooks = () => [...new Set(current().byPath.values())]
    const access = async (provider: string) => ({
      provider,
      accessToken: 'token_never_shown',
      tokenType: 'bearer',
      expiresAt: null,
      scopes: [],
    })
    this.catchUp = new CatchUp({
      journalFile: join(folder, 'catch-up'),
      current,
      open: (source) => openPast(source, { config: config(), env }, { access, bots: noBots }),
      accept: async (delivery, { path, scheme, headerNames }) => {
        const refusal = this.refusals.shift()
        if (refusal) throw refusal
        this.accepted.push(delivery)
        const payload = JSON.parse(delivery.bytes.toString()) as Payload
        const headers = headersNamed(delivery.rawHeaders, headerNames)
        const own = { payload, signedId: undefined }
        const deliveryId = getDeliveryId(scheme, headers, own)
        this.events.add(new Date(), { webhook: path, state: 'done', deliveryId })
      },
      events: this.events,
      log: { warn: () => undefined },
      isServing: () => true,
      signal: this.stop.signal,
      now: () => this.nowMs,
      isOnline: () => this.isOnline,
    })
  }

  /** With the first reading, which sets the cursor. */
  static async start(webhooks: string, gateway: string, folder?: string): Promise<CaughtUp> {
    const own = new CaughtUp(folder ?? (await temporaryFolder()), webhooks, gateway)
    await own.catchUp.start()
    await own.catchUp.tick()
    return own
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= minuteMs / 2) {
      this.nowMs += minuteMs / 2
      await this.catchUp.tick()
    }
  }

  /** What the daemon told, the oldest first. */
  told(): (string | undefined)[] {
    const own = this.events.list({ limit: 100, kind: 'daemon' })
    return own.map(({ detail }) => detail).toReversed()
  }

  problems(): string[] {
    return this.catchUp.problems().map(({ detail }) => detail)
  }
}
