import { BusError } from './bus-error.ts'
import { type Type, alignmentOf, typesOf } from './signature.ts'
import { Variant } from './variant.ts'

/**
 * Encodes values of a signature, little-endian, as if they began at an offset that is a multiple of
 * 8 (D-Bus specification, "Marshaling"). Throws `bus-protocol` when a value is not of its type.
 */
export const writeValues = (signature: string, values: readonly unknown[]): Buffer => {
  const types = typesOf(signature)
  if (types.length !== values.length)
    throw new BusError('bus-protocol', `${values.length} values do not fit "${signature}"`)
  const out = new Writer()
  types.forEach((type, index) => out.write(type, values[index]))
  return out.bytes()
}

class Writer {
  #buffer = Buffer.alloc(256)
  #length = 0

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  write(type: Type, value: unknown): void {
    this.#align(alignmentOf(type))
    switch (type.kind) {
      case 'y':
        return this.#integer(1, numberOf(value, 0, 0xff))
      case 'b':
        if (typeof value !== 'boolean') throw misfit('b', value)
        return this.#integer(4, value ? 1 : 0)
      case 'n':
        return this.#integer(2, numberOf(value, -0x8000, 0x7fff))
      case 'q':
        return this.#integer(2, numberOf(value, 0, 0xffff))
      case 'i':
        return this.#integer(4, numberOf(value, -0x8000_0000, 0x7fff_ffff))
      case 'u':
        return this.#integer(4, numberOf(value, 0, 0xffff_ffff))
      case 'x':
      case 't':
        return this.#big(type.kind, value)
      case 'd':
        if (typeof value !== 'number') throw misfit('d', value)
        return this.#double(value)
      case 's':
      case 'o':
        return this.#text(type.kind, value)
      case 'g':
        return this.#signature(value)
      case 'v':
        return this.#variant(value)
      case 'a':
        return this.#array(type.of, value)
      case 'r':
        if (!Array.isArray(value) || value.length !== type.fields.length) throw misfit('r', value)
        return type.fields.forEach((field, index) => this.write(field, value[index]))
      case 'e':
        if (!Array.isArray(value)) throw misfit('e', value)
        this.write(type.key, value[0])
        return this.write(type.value, value[1])
    }
  }

  /** Room is made first: it may replace the buffer. */
  #integer(size: 1 | 2 | 4, value: number): void {
    const at = this.#take(size)
    if (value < 0) this.#buffer.writeIntLE(value, at, size)
    else this.#buffer.writeUIntLE(value, at, size)
  }

  #double(value: number): void {
    const at = this.#take(8)
    this.#buffer.writeDoubleLE(value, at)
  }

  #big(kind: 'x' | 't', value: unknown): void {
    if (typeof value !== 'bigint') throw misfit(kind, value)
    const fitted = kind === 'x' ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value)
    if (fitted !== value) throw misfit(kind, value)
    const at = this.#take(8)
    if (kind === 'x') this.#buffer.writeBigInt64LE(value, at)
    else this.#buffer.writeBigUInt64LE(value, at)
  }

  #text(kind: 's' | 'o', value: unknown): void {
    // A NUL or half a character would make the bus end the connection.
    if (typeof value !== 'string' || value.includes('\0') || /\p{Cs}/u.test(value))
      throw misfit(kind, value)
    if (kind === 'o' && !/^\/(?:\w+(?:\/\w+)*)?$/.test(value)) throw misfit(kind, value)
    const text = Buffer.from(value)
    this.#integer(4, text.length)
    const at = this.#take(text.length + 1)
    this.#buffer.set(text, at)
  }

  #signature(value: unknown): void {
    if (typeof value !== 'string' || value.length > 255) throw misfit('g', value)
    typesOf(value)
    this.#integer(1, value.length)
    const at = this.#take(value.length + 1)
    this.#buffer.write(value, at, 'latin1')
  }

  #variant(value: unknown): void {
    if (!(value instanceof Variant)) throw misfit('v', value)
    const [type, ...more] = typesOf(value.signature)
    if (!type || more.length > 0) throw misfit('v', value.signature)
    this.#signature(value.signature)
    this.write(type, value.value)
  }

  #array(of: Type, value: unknown): void {
    const lengthAt = this.#take(4)
    // The gap before the first element is there even without one, and is not counted.
    this.#align(alignmentOf(of))
    const start = this.#length
    if (of.kind === 'y') {
      if (!(value instanceof Uint8Array)) throw misfit('ay', value)
      const at = this.#take(value.length)
      this.#buffer.set(value, at)
    } else if (of.kind === 'e') {
      if (!(value instanceof Map)) throw misfit('a{}', value)
      for (const entry of value) this.write(of, entry)
    } else {
      if (!Array.isArray(value)) throw misfit('a', value)
      for (const element of value) this.write(of, element)
    }
    this.#buffer.writeUInt32LE(this.#length - start, lengthAt)
  }

  /** Makes room of zeros and says where it begins. */
  #take(length: number): number {
    const at = this.#length
    this.#length += length
    if (this.#length > this.#buffer.length) {
      const larger = Buffer.alloc(Math.max(this.#length, this.#buffer.length * 2))
      this.#buffer.copy(larger)
      this.#buffer = larger
    }
    return at
  }

  #align(to: number): void {
    this.#take((to - (this.#length % to)) % to)
  }
}

const numberOf = (value: unknown, least: number, most: number): number => {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
    throw misfit('number', value)
  return value
}

const misfit = (kind: string, value: unknown): BusError =>
  new BusError(
    'bus-protocol',
    `a value of type ${typeof value} does not fit the D-Bus type ${kind}`,
  )
