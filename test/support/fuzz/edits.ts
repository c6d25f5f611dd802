import * as fc from 'fast-check'

/** What is done to a text; `at`, `size`, `other` and `word` say where, how much and with what. */
export type Edit = {
  readonly kind: (typeof kinds)[number]
  readonly at: number
  readonly size: number
  readonly other: string
  readonly word: string
}

const kinds = [
  'flip',
  'set',
  'cut',
  'double',
  'insert',
  'splice',
  'end',
  'word',
  'cut-part',
  'swap-part',
  'add-part',
] as const

/** A few edits, now and then more, with pieces of these texts and with these words. */
export const editsWith = (
  other: fc.Arbitrary<string>,
  word: fc.Arbitrary<string>,
): fc.Arbitrary<Edit[]> => {
  const kind = fc.constantFrom(...kinds)
  const place = fc.noBias(fc.nat())
  const edit = fc.record({ kind, at: place, size: fc.oneof(fc.nat(), place), other, word })
  return fc.oneof(
    { weight: 3, arbitrary: fc.array(edit, { minLength: 1, maxLength: 2 }) },
    { weight: 1, arbitrary: fc.array(edit, { maxLength: 8 }) },
  )
}

const maxLength = 16_384

/** A text after some edits. Bytes are edited as a text of their Latin-1 characters. */
export const edited = (text: string, edits: readonly Edit[]): string =>
  edits.reduce((before, edit) => editOnce(before, edit).slice(0, maxLength), text)

const editOnce = (text: string, { kind, at, size, other, word }: Edit): string => {
  const from = at % (text.length + 1)
  const to = Math.min(from + (size % 16) + 1, text.length)
  const [before, middle, after] = [text.slice(0, from), text.slice(from, to), text.slice(to)]
  switch (kind) {
    case 'flip':
      return before + flipped(middle, size % 8) + after
    case 'set':
      return before + String.fromCharCode(size % 256).repeat(middle.length) + after
    case 'cut':
      return before + after
    case 'double':
      return before + middle + middle + after
    case 'insert':
      return before + String.fromCharCode(size % 256) + middle + after
    case 'word':
      return before + word + middle + after
    case 'splice':
      return before + other.slice(size % (other.length + 1))
    case 'end':
      return before
    case 'cut-part': {
      const [start, end] = partAt(text, at)
      return text.slice(0, start) + text.slice(end)
    }
    case 'swap-part': {
      const [start, end] = partAt(text, at)
      return text.slice(0, start) + pieceOf(other, word, size) + text.slice(end)
    }
    case 'add-part': {
      const [start, end] = partAt(text, at)
      const between = text[end - 1] === '\n' ? '' : (text[end] ?? text[start - 1] ?? ' ')
      return text.slice(0, end) + between + pieceOf(other, word, size) + text.slice(end)
    }
  }
}

const pieceOf = (other: string, word: string, size: number): string =>
  size % 2 === 0 ? word : other.slice(...partAt(other, size >>> 1))

const flipped = (text: string, bit: number): string =>
  text === '' ? '' : String.fromCharCode(text.charCodeAt(0) ^ (1 << bit)) + text.slice(1)

/**
 * A part of JSON, YAML or a form that means something alone: a line with those indented below it, or
 * what stands between brackets, commas, ampersands or spaces.
 */
const partAt = (text: string, at: number): readonly [number, number] => {
  const parts = at % 2 === 0 ? blocksOf(text) : itemsOf(text)
  return parts[(at >>> 1) % parts.length] ?? [0, text.length]
}

const blocksOf = (text: string): (readonly [number, number])[] =>
  [...text.matchAll(/^( *)(?:- )?\S.*\n?(?:\1 .*\n?|\s*\n)*/gm)].map(({ index, 0: { length } }) => [
    index,
    index + length,
  ])

const itemsOf = (text: string): (readonly [number, number])[] =>
  [...text.matchAll(/\{[^{}]*\}|\[[^[\]]*\]|"(?:[^"\\]|\\.)*"|[^\s,&[\]{}]+/g)].map(
    ({ index, 0: { length } }) => [index, index + length],
  )
