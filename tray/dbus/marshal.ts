import { BusError } from './connect.ts'

/**
 * Encodes values of a signature, little-endian, as if they began at an offset that is a multiple of
 * 8 (D-Bus specification, "Marshaling"). Throws `bus-protocol` when a value is not of its type.
 */
export const writeValues = (signature: string, values: readonly unknown[]): Buffer => {
  const types = parseTypes(signature)
  if (types.length !== values.length)
    throw new BusError('bus-protocol', `${values.length} values do not fit "${signature}"`)
  const out = new Writer()
  types.forEach((type, index) => out.write(type, values[index]))
  return out.bytes()
}

/** Size in bytes, smallest and largest value. */
const integerRanges = {
  y: [1, 0, 0xff],
  i: [4, -0x8000_0000, 0x7fff_ffff],
  u: [4, 0, 0xffff_ffff],
} as const

class Writer {
  #buffer = Buffer.alloc(256)
  #length = 0

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  write(type: Type, value: unknown): void {
    this.#align(getAlignment(type))
    switch (type.kind) {
      case 'y':
      case 'i':
      case 'u': {
        const [size, min, max] = integerRanges[type.kind]
        return this.#integer(size, parseNumber(value, min, max))
      }
      case 'b':
        if (typeof value !== 'boolean') throw misfit('b', value)
        return this.#integer(4, value ? 1 : 0)
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
      case 'n':
      case 'q':
      case 'x':
      case 't':
      case 'd':
        // Nothing that the tray sends has 16 or 64 bits.
        throw misfit(type.kind, value)
    }
  }

  /** Takes space before it writes, since that may replace the buffer. */
  #integer(size: 1 | 4, value: number): void {
    const at = this.#take(size)
    if (value < 0) this.#buffer.writeIntLE(value, at, size)
    else this.#buffer.writeUIntLE(value, at, size)
  }

  #text(kind: 's' | 'o', value: unknown): void {
    // The bus closes the connection on a NUL or a lone surrogate.
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
    parseTypes(value)
    this.#integer(1, value.length)
    const at = this.#take(value.length + 1)
    this.#buffer.write(value, at, 'latin1')
  }

  #variant(value: unknown): void {
    if (!(value instanceof Variant)) throw misfit('v', value)
    const [type, ...more] = parseTypes(value.signature)
    if (!type || more.length > 0) throw misfit('v', value.signature)
    this.#signature(value.signature)
    this.write(type, value.value)
  }

  #array(of: Type, value: unknown): void {
    const lengthAt = this.#take(4)
    // The padding before the first element is there even without one, and is not counted.
    this.#align(getAlignment(of))
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

  /** Appends zeros and returns where they begin. */
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

const parseNumber = (value: unknown, least: number, most: number): number => {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most)
    throw misfit('number', value)
  return value
}

const misfit = (kind: string, value: unknown): BusError =>
  new BusError(
    'bus-protocol',
    `a value of type ${typeof value} does not fit the D-Bus type ${kind}`,
  )

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
    const values = parseTypes(signature).map((type) => reader.read(type, 0))
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
    this.#align(getAlignment(type))
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
        const [inner, ...more] = parseTypes(signature)
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
    this.#align(getAlignment(of))
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

/** One complete D-Bus type; `r` is a struct and `e` an entry of a dictionary, as in the specification. */
type Type =
  | { readonly kind: BasicKind | 'v' }
  | { readonly kind: 'a'; readonly of: Type }
  | { readonly kind: 'r'; readonly fields: readonly Type[] }
  | { readonly kind: 'e'; readonly key: Type; readonly value: Type }

type BasicKind = 'y' | 'b' | 'n' | 'q' | 'i' | 'u' | 'x' | 't' | 'd' | 's' | 'o' | 'g'

const basics: ReadonlySet<string> = new Set('ybnqiuxtdsog')
const maxSignatureDepth = 32

/** The types a signature lists (D-Bus specification, "Type Signatures"). Throws `bus-protocol`. */
export const parseTypes = (signature: string): Type[] => {
  const found: Type[] = []
  for (let at = 0; at < signature.length;) {
    const [type, next] = typeAt(signature, at, 0)
    found.push(type)
    at = next
  }
  return found
}

const typeAt = (signature: string, at: number, depth: number): [Type, number] => {
  const letter = signature[at] ?? ''
  if (depth > maxSignatureDepth) throw invalid(signature)
  if (isBasic(letter) || letter === 'v') return [{ kind: letter }, at + 1]
  if (letter === 'a' && signature[at + 1] === '{') {
    const [key, afterKey] = typeAt(signature, at + 2, depth + 1)
    const [value, end] = typeAt(signature, afterKey, depth + 1)
    if (!isBasic(key.kind) || signature[end] !== '}') throw invalid(signature)
    return [{ kind: 'a', of: { kind: 'e', key, value } }, end + 1]
  }
  if (letter === 'a') {
    const [of, end] = typeAt(signature, at + 1, depth + 1)
    return [{ kind: 'a', of }, end]
  }
  if (letter !== '(') throw invalid(signature)
  const fields: Type[] = []
  let end = at + 1
  while (signature[end] !== ')') {
    const [field, next] = typeAt(signature, end, depth + 1)
    fields.push(field)
    end = next
  }
  if (fields.length === 0) throw invalid(signature)
  return [{ kind: 'r', fields }, end + 1]
}

const isBasic = (letter: string): letter is BasicKind => basics.has(letter)

const invalid = (signature: string): BusError =>
  new BusError('bus-protocol', `"${signature}" is not a valid signature`)

/** A value of the type begins at a multiple of this many bytes. */
const getAlignment = ({ kind }: Type): number => {
  if ('ygv'.includes(kind)) return 1
  if ('nq'.includes(kind)) return 2
  return 'biusoa'.includes(kind) ? 4 : 8
}

/*
 * D-Bus values in JavaScript: 64-bit numbers (`x`, `t`) are bigint, paths and signatures strings, `ay`
 * bytes, other arrays and structs arrays, dictionaries Map, and variants (`v`) this class.
 */

/** A value with its type. */
export class Variant<Value = unknown> {
  readonly signature: string
  readonly value: Value

  constructor(signature: string, value: Value) {
    this.signature = signature
    this.value = value
  }
}

/** `variant('s', 'text')` */
export const variant = <Value>(signature: string, value: Value): Variant<Value> =>
  new Variant(signature, value)
