/*
 * A text in the forms in which it can carry another: as it stands, without escapes, without white space, and decoded
 * from base64 and from hex at each alignment. Each step is one pass over the text.
 */

/** A derived text, whose characters can be traced to the text it was derived from. */
export type View = {
  readonly text: string
  /** The range of the original text that became this range. */
  readonly toRange: (start: number, end: number) => readonly [start: number, end: number]
  /** False where words are run together, so that only held values mean something there. */
  readonly hasWords: boolean
}

export const asItStands = (text: string): View => ({
  text,
  toRange: (start, end) => [start, end],
  hasWords: true,
})

/** `%41` (RFC 3986), escapes of JSON, JavaScript and Markdown, and character references of HTML. */
const escape =
  /%[0-9A-Fa-f]{2}|\\(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|[nrt]|[!-/:-@[-`{-~])|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);/g

const hasEscape = /[%\\&]/

const named: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
  '\\n': '\n',
  '\\r': '\r',
  '\\t': '\t',
}

const toCharacter = (found: string): string => {
  const known = named[found]
  if (known !== undefined) return known
  const code = found.startsWith('&')
    ? Number(found.slice(2, -1).replace(/^x/i, '0x'))
    : found.startsWith('%')
      ? Number.parseInt(found.slice(1), 16)
      : /^\\[ux]./.test(found)
        ? Number.parseInt(found.slice(2), 16)
        : found.charCodeAt(1)
  // One character for each, so that places can be counted.
  return String.fromCharCode(code)
}

/** The text without its escapes; undefined where it has none. */
export const withoutEscapes = ({ text, toRange }: View): View | undefined => {
  if (!hasEscape.test(text)) return undefined
  const plain = text.replaceAll(escape, toCharacter)
  if (plain.length === text.length) return undefined
  return {
    text: plain,
    hasWords: true,
    toRange: (start, end) => {
      // Each escape is one character; nothing else changed.
      const places = placesOf(text, escape, 1, [start, end])
      return toRange(...places)
    },
  }
}

/** Characters that no reader sees, and that an answer loses before it leaves (`format/harmless.ts`). */
const unseen = /[\0\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]+/gu

/** The text as a reader sees it; undefined where it has nothing unseen. */
export const withoutUnseen = ({ text, toRange }: View): View | undefined => {
  const seen = text.replaceAll(unseen, '')
  if (seen.length === text.length) return undefined
  return {
    text: seen,
    hasWords: true,
    toRange: (start, end) => toRange(...placesOf(text, unseen, 0, [start, end])),
  }
}

/** White space, and characters that take no room. */
const spaces = /[\s\0\u2028-\u202f\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]+/gu

export const withoutSpaces = ({ text, toRange }: View): View => ({
  text: text.replaceAll(spaces, ''),
  hasWords: false,
  toRange: (start, end) => toRange(...placesOf(text, spaces, 0, [start, end])),
})

/** Where a line of base64 ends that goes on in the next one. */
const lineEnds = /(?<=[A-Za-z0-9+/_-]{16})[ \t]*\r?\n[ \t>]*(?=[A-Za-z0-9+/_-])/g

const otherThanBase64 = /[^A-Za-z0-9+/_-]+/g

/** Four digits, so that no alignment changes: zero bytes, which end a word. */
const apart = 'AAAA'

/** Decoded as base64 or base64url (RFC 4648) from each of four alignments. */
export const fromBase64 = ({ text, toRange }: View): View[] => {
  const joined = text.replaceAll(lineEnds, '')
  const digits = joined.replaceAll(otherThanBase64, apart)
  return [0, 1, 2, 3].map((skip) => ({
    text: Buffer.from(digits.slice(skip), 'base64').toString('latin1'),
    hasWords: true,
    toRange: (start, end) => {
      const inDigits = [
        skip + Math.floor((start * 4) / 3),
        skip + Math.ceil((end * 4) / 3),
      ] as const
      const inJoined = placesOf(joined, otherThanBase64, apart.length, inDigits)
      return toRange(...placesOf(text, lineEnds, 0, inJoined))
    },
  }))
}

const otherThanHex = /(?:0x|[^0-9A-Fa-f])+/g

/** Decoded as hex from both alignments; what is none is left out. */
export const fromHex = ({ text, toRange }: View): View[] => {
  const digits = text.replaceAll(otherThanHex, '')
  return [0, 1].map((skip) => ({
    text: Buffer.from(
      digits.slice(skip, digits.length - ((digits.length - skip) % 2)),
      'hex',
    ).toString('latin1'),
    hasWords: true,
    toRange: (start, end) =>
      toRange(...placesOf(text, otherThanHex, 0, [skip + start * 2, skip + end * 2])),
  }))
}

/**
 * The places in a text of the boundaries that are these in the text in which each match of `pattern` has become so
 * many characters. A start is behind what was left out before it, an end is before what comes after it.
 */
const placesOf = (
  text: string,
  pattern: RegExp,
  width: number,
  [start, end]: readonly [number, number],
): readonly [number, number] => {
  let shift = 0
  let first: number | undefined
  for (const match of text.matchAll(pattern)) {
    const at = match.index - shift
    if (first === undefined && start < at + width) first = start + shift
    if (end < at + 1) break
    shift += match[0].length - width
  }
  return [first ?? start + shift, end + shift]
}
