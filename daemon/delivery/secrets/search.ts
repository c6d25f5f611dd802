import { setImmediate as nextTurn } from 'node:timers/promises'
import { findForms } from './forms.ts'
import { type HeldSecret, type SecretKind, toNeedles } from './held.ts'
import {
  asItStands,
  fromBase64,
  fromHex,
  type View,
  withoutEscapes,
  withoutSpaces,
  withoutUnseen,
} from './views.ts'

/*
 * Finds secrets in a text: those that doorward holds, by comparing, and well-known forms. The time grows with the
 * length of the text alone: each view of it is read once for all held values.
 */

export type FoundSecret = {
  readonly kind: SecretKind
  readonly name: string
  /** Indexes of the text. */
  readonly start: number
  readonly end: number
}

/** Bytes that are compared by a hash first; no needle is shorter. */
const window = 8
const factor = 31
/** What the oldest character of a window counts for. */
const oldest = Array.from({ length: window - 1 }).reduce<number>(
  (power) => Math.imul(power, factor),
  1,
)

type Needle = {
  readonly text: string
  /** Where in it the characters end that are compared first. */
  readonly end: number
  readonly held: HeldSecret
}

const maxSame = 3

const hashOf = (text: string): number => {
  let hash = 0
  for (let place = 0; place < text.length; place += 1)
    hash = (Math.imul(hash, factor) + text.charCodeAt(place)) | 0
  return hash
}

/** Held values by the hash of eight of their characters (Rabin and Karp). */
export class Needles {
  readonly #byHash = new Map<number, Needle[]>()
  /** Whether any hash has these lower bits. */
  readonly #mayHave = new Uint8Array(0x10000)

  constructor(all: readonly HeldSecret[]) {
    for (const held of all) {
      const texts = toNeedles(held.value).flatMap((text) => [
        text,
        // Decoded bytes show it so.
        ...(/[^\0-\x7f]/.test(text) ? [Buffer.from(text).toString('latin1')] : []),
      ])
      for (const text of texts) this.#add(text, held)
    }
  }

  /** Its last characters that few others have are compared first. */
  #add(text: string, held: HeldSecret): void {
    for (let end = text.length; end >= window; end -= 1) {
      const hash = hashOf(text.slice(end - window, end))
      const same = this.#byHash.get(hash) ?? []
      const isFirst = end === window
      if (same.length >= maxSame && !isFirst) continue
      this.#byHash.set(hash, [...same, { text, end, held }])
      this.#mayHave[hash & 0xffff] = 1
      return
    }
  }

  find(text: string): FoundSecret[] {
    const found: FoundSecret[] = []
    if (this.#byHash.size === 0) return found
    let hash = 0
    for (let place = 0; place < text.length; place += 1) {
      if (place >= window) hash = (hash - Math.imul(text.charCodeAt(place - window), oldest)) | 0
      hash = (Math.imul(hash, factor) + text.charCodeAt(place)) | 0
      if (this.#mayHave[hash & 0xffff] === 0) continue
      for (const { text: value, end, held } of this.#byHash.get(hash) ?? []) {
        const start = place + 1 - end
        if (start >= 0 && text.startsWith(value, start))
          found.push({ kind: held.kind, name: held.name, start, end: start + value.length })
      }
    }
    return found
  }
}

/** The event loop is free between two views of a text that is longer. */
const longText = 256 * 1024

/**
 * All secrets of a text but those of allowed kinds, in the order of their places. `now` is in milliseconds since 1970: a JWT that has ended is
 * no secret.
 */
export const findSecrets = async (
  text: string,
  needles: Needles,
  now: number,
  allowed: readonly SecretKind[] = [],
): Promise<FoundSecret[]> => {
  const found = new Map<string, FoundSecret>()
  for (const view of listViews(text)) {
    const forms = view.hasWords
      ? findForms(view.text, now).map(({ form: { kind, name }, start, end }) => ({
          kind,
          name,
          start,
          end,
        }))
      : []
    for (const hit of [...needles.find(view.text), ...forms]) {
      // Those do not count: many of them must not hide one that does.
      if (allowed.includes(hit.kind)) continue
      const [start, end] = view.toRange(hit.start, hit.end)
      found.set(`${hit.kind} ${start} ${end}`, { ...hit, start, end })
      // Each place is traced on its own, and one hit is enough to stop an answer.
      if (found.size >= maxFound) return inOrder([...found.values()])
    }
    if (text.length > longText) await nextTurn()
  }
  return inOrder([...found.values()])
}

const maxFound = 100

/** Made one after the other, as each may have the size of the text. */
function* listViews(text: string): Generator<View> {
  const whole = asItStands(text)
  const plain = withoutEscapes(whole)
  const seen = withoutUnseen(plain ?? whole)
  for (const view of [whole, plain, seen].filter((one) => one !== undefined)) {
    yield view
    yield withoutSpaces(view)
    yield* fromBase64(view)
    yield* fromHex(view)
  }
}

const inOrder = (found: readonly FoundSecret[]): FoundSecret[] =>
  found.toSorted((one, other) => one.start - other.start || other.end - one.end)

/** The text with `[secret: <kind>]` in place of each; overlapping ones are one. */
export const hideFound = (text: string, found: readonly FoundSecret[]): string => {
  let clean = ''
  let last = 0
  for (const { kind, start, end } of found) {
    if (start >= last) clean += `${text.slice(last, start)}[secret: ${kind}]`
    last = Math.max(last, end)
  }
  return clean + text.slice(last)
}
