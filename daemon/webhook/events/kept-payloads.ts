import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import type { EventStore } from '../../events/event-store.ts'
import type { DeliveryKey } from '../dedupe.ts'
import type { SignatureHeaders } from '../signatures/header.ts'
import type { VerifiedBody } from '../signatures/verify.ts'
import type { AcceptedEvent } from './accepted-event.ts'

/** A verified delivery, for another run under another definition. */
export type KeptPayload = {
  readonly body: VerifiedBody
  /** Without signature, token and cookie. */
  readonly headers: SignatureHeaders
  readonly receivedAt: Date
  readonly known: AcceptedEvent['known']
  readonly delivery: DeliveryKey | undefined
}

type Kept = KeptPayload & {
  readonly forms: SignatureScheme['forms']
  /** How many bytes were written before it. */
  readonly position: number
}

type Payload = Pick<Kept, 'body' | 'headers' | 'receivedAt' | 'forms'>

const maxBytes = 4 * 1024 * 1024

/**
 * The payloads of the newest events, as long as the events are in memory: 4 MiB together, one behind the other
 * in one buffer that is written round and round, so that the newest replace the oldest.
 */
export class KeptPayloads {
  readonly #byId = new Map<string, Kept>()
  readonly #maxBytes: number
  #ring: Buffer | undefined
  #end = 0

  constructor(events: Pick<EventStore, 'onForget'>, size = maxBytes) {
    this.#maxBytes = size
    events.onForget((id) => this.#byId.delete(id))
  }

  /** Keeps a payload for each of the events that it became; `ids` are theirs. */
  keep(
    { body, headers, forms, receivedAt }: Payload,
    events: readonly Pick<AcceptedEvent, 'known' | 'delivery'>[],
    ids: readonly string[],
  ): void {
    const { length } = body.bytes
    if (length > this.#maxBytes) return
    this.#ring ??= Buffer.allocUnsafeSlow(this.#maxBytes)
    const room = this.#maxBytes - (this.#end % this.#maxBytes)
    // In one piece: what does not fit before the end of the buffer begins at its start.
    const position = this.#end + (length > room ? room : 0)
    this.#end = position + length
    const start = position % this.#maxBytes
    const copy = body.copyTo(this.#ring.subarray(start, start + length))
    events.forEach(({ known, delivery }, index) => {
      const kept = { body: copy, headers, forms, receivedAt, known, delivery, position }
      this.#byId.set(ids[index] ?? '', kept)
    })
  }

  /** A copy, as its bytes may be overwritten. */
  get(id: string): KeptPayload | undefined {
    const kept = this.#byId.get(id)
    if (!kept || kept.position < this.#end - this.#maxBytes) return undefined
    const body = kept.body.copyTo(Buffer.allocUnsafeSlow(kept.body.bytes.length))
    return { ...kept, body, headers: withoutProof(kept) }
  }
}

/** The headers of a delivery but those that prove who sent it. */
const withoutProof = ({ headers, forms }: Pick<Kept, 'headers' | 'forms'>): SignatureHeaders => {
  const kept = Object.assign(Object.create(null) as Record<string, readonly string[]>, headers)
  for (const name of ['authorization', 'cookie', ...forms.map(({ header }) => header)])
    delete kept[name]
  return kept
}
