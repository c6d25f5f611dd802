import { BusError } from './bus-error.ts'
import { type Type, alignmentOf, typesOf } from './signature.ts'
import { variant } from './variant.ts'

const maxDepth = 64

/**
 * Decodes values of a signature from bytes that began at an offset that is a multiple of 8.
 * Throws `bus-protocol` on bytes that are not such values.
 */
export const readValues = (
  signature: string,
  bytes: Uint8Array,
  littleEndian = true,
): { values: unknown[]; length: number } => {
  const reader = new Reader(bytes, littleEndian)
  try {
    const values = typesOf(signature).map((type) => reader.read(type, 0))
    return { values, length: reader.position }
  } catch (error) {
    if (error instanceof RangeError) throw broken()
    throw error
  }
}

class Reader {
  position = 0
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #little: boolean

  constructor(bytes: Uint8Array, littleEndian: boolean) {
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#little = littleEndian
  }

  read(type: Type, depth: number): unknown {
    if (depth > maxDepth) throw broken()
    this.#align(alignmentOf(type))
    switch (type.kind) {
      case 'y':
        return this.#view.getUint8(this.#take(1))
      case 'b':
        return this.#view.getUint32(this.#take(4), this.#little) !== 0
      case 'n':
        return this.#view.getInt16(this.#take(2), this.#little)
      case 'q':
        return this.#view.getUint16(this.#take(2), this.#little)
      case 'i':
        return this.#view.getInt32(this.#take(4), this.#little)
      case 'u':
        return this.#view.getUint32(this.#take(4), this.#little)
      case 'x':
        return this.#view.getBigInt64(this.#take(8), this.#little)
      case 't':
        return this.#view.getBigUint64(this.#take(8), this.#little)
      case 'd':
        return this.#view.getFloat64(this.#take(8), this.#little)
      case 's':
      case 'o':
        return this.#text(this.#view.getUint32(this.#take(4), this.#little))
      case 'g':
        return this.#text(this.#view.getUint8(this.#take(1)))
      case 'v': {
        const signature = this.#text(this.#view.getUint8(this.#take(1)))
        const [inner, ...more] = typesOf(signature)
        if (!inner || more.length > 0) throw broken()
        return variant(signature, this.read(inner, depth + 1))
      }
      case 'a':
        return this.#array(type.of, depth)
      case 'r':
        return type.fields.map((field) => this.read(field, depth + 1))
      case 'e':
        return [this.read(type.key, depth + 1), this.read(type.value, depth + 1)]
    }
  }

  #array(of: Type, depth: number): unknown {
    const length = this.#view.getUint32(this.#take(4), this.#little)
    this.#align(alignmentOf(of))
    const end = this.position + length
    if (end > this.#bytes.length) throw broken()
    if (of.kind === 'y') return Buffer.from(this.#bytes.subarray(this.#take(length), end))
    const elements: unknown[] = []
    while (this.position < end) elements.push(this.read(of, depth + 1))
    if (this.position !== end) throw broken()
    return of.kind === 'e' ? new Map(elements as [unknown, unknown][]) : elements
  }

  #text(length: number): string {
    const at = this.#take(length + 1)
    return Buffer.from(this.#bytes.subarray(at, at + length)).toString()
  }

  #take(length: number): number {
    const at = this.position
    if (at + length > this.#bytes.length) throw broken()
    this.position = at + length
    return at
  }

  #align(to: number): void {
    this.#take((to - (this.position % to)) % to)
  }
}

const broken = (): BusError => new BusError('bus-protocol', 'a message on the bus is damaged')
