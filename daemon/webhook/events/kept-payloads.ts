import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import type { SignatureHeaders } from '../signatures/header.ts'
import { trustRead, type VerifiedBody } from '../signatures/verify.ts'

/** A verified delivery, for another run under another definition. */
export type KeptPayload = {
  readonly body: VerifiedBody
  readonly headers: SignatureHeaders
}

/** Where a payload is in the buffer, one behind the other: `position` counts all that was written before. */
type Place = { readonly position: number; readonly bodyLength: number; readonly end: number }

const maxBytes = 4 * 1024 * 1024
const maxEvents = 1000

/**
 * The payloads of the newest 1,000 events, 4 MiB together, in one buffer that is written round and round. No
 * object is kept for one: what outlives a delivery costs more than the delivery allocates.
 */
export class KeptPayloads {
  readonly #maxBytes: number
  #ring: Buffer | undefined
  readonly #ids: string[] = []
  /** Three numbers of each id. */
  readonly #places = new Float64Array(maxEvents * 3)
  #count = 0
  #end = 0

  constructor(size = maxBytes) {
    this.#maxBytes = size
  }

  /** Keeps a payload for the events that it became. */
  keep(ids: readonly string[], { body, headers }: KeptPayload): void {
    const { length } = body.bytes
    const headersText = toText(headers)
    // A UTF-16 unit takes three bytes of UTF-8 at most.
    const wanted = length + headersText.length * 3
    if (wanted > this.#maxBytes) return
    this.#ring ??= Buffer.allocUnsafeSlow(this.#maxBytes)
    const room = this.#maxBytes - (this.#end % this.#maxBytes)
    // In one piece: what does not fit before the end of the buffer begins at its start.
    const position = this.#end + (wanted > room ? room : 0)
    const start = position % this.#maxBytes
    this.#ring.set(body.bytes, start)
    this.#end = position + length + this.#ring.write(headersText, start + length)
    for (const id of ids) {
      const slot = this.#count++ % maxEvents
      this.#ids[slot] = id
      this.#places.set([position, length, this.#end], slot * 3)
    }
  }

  /** A copy; the headers without signature, token and cookie. */
  get(id: string, { forms }: Partial<Pick<SignatureScheme, 'forms'>>): KeptPayload | undefined {
    const place = this.#placeOf(id)
    if (!place || !this.#ring || place.position < this.#end - this.#maxBytes) return undefined
    const { position, bodyLength, end } = place
    const bytes = Buffer.allocUnsafeSlow(end - position)
    this.#ring.copy(bytes, 0, position % this.#maxBytes)
    const headers = fromText(bytes.toString('utf8', bodyLength))
    for (const name of ['authorization', 'cookie', ...(forms ?? []).map(({ header }) => header)])
      delete headers[name]
    return { body: trustRead(bytes.subarray(0, bodyLength)), headers }
  }

  /** Overwrites the payload of an event, unless it is another event's too. */
  forget(id: string): void {
    const place = this.#placeOf(id)
    if (!place || !this.#ring || place.position < this.#end - this.#maxBytes) return
    const { position, end } = place
    const isShared = this.#ids.some((other) => other !== id && this.#placeOf(other)?.end === end)
    this.#ids[this.#ids.indexOf(id)] = ''
    if (isShared) return
    const start = position % this.#maxBytes
    this.#ring.fill(0, start, start + end - position)
  }

  #placeOf(id: string): Place | undefined {
    const slot = this.#ids.indexOf(id)
    const [position, bodyLength, end] = this.#places.subarray(slot * 3, slot * 3 + 3)
    if (position === undefined || bodyLength === undefined || end === undefined) return undefined
    return { position, bodyLength, end }
  }
}

/** One name or value a line, which none of them has in HTTP. JSON takes 10 % of a delivery more. */
const toText = (headers: SignatureHeaders): string => {
  let text = ''
  for (const name in headers) for (const value of headers[name] ?? []) text += `${name}\n${value}\n`
  return text
}

const fromText = (text: string): Record<string, string[]> => {
  const headers = Object.create(null) as Record<string, string[]>
  const lines = text.split('\n')
  for (let index = 0; index + 1 < lines.length; index += 2)
    (headers[lines[index] ?? ''] ??= []).push(lines[index + 1] ?? '')
  return headers
}
