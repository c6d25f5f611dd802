import { type Fence, fenceAfter } from '../../util/markdown-fence.ts'
import { parseJson } from '../../util/payload-path.ts'

/*
 * An answer can have blocks of JSON for a program. Language models write them in many forms: with comments and
 * trailing commas, in a fence that begins in the middle of a line, or without a fence.
 */

/** A block of an answer that begins like JSON. */
export type JsonBlock = {
  /** Undefined when the block is not JSON, even with what is tolerated. */
  readonly value: unknown
  readonly source: string
  readonly isFenced: boolean
}

type FoundBlock = JsonBlock & { readonly end: number; readonly charactersRead: number }

/** Takes blocks out of an answer: those of which `read` makes a value. */
export const takeJsonBlocks = <Value>(
  answer: string,
  read: (block: JsonBlock) => Value | undefined,
): { readonly text: string; readonly values: readonly Value[] } => {
  const text = answer.replaceAll('\r\n', '\n')
  const values: Value[] = []
  const kept: string[] = []
  // A block that stays is read again from each of its lines.
  let budget = 3 * text.length
  let keptTo = 0
  let fence: Fence | undefined
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at)
    const line = text.slice(at, end === -1 ? text.length : end)
    const start = fence || budget <= 0 ? undefined : findStart(text, line, at)
    const block = start && readBlock(text, start)
    if (start && block) {
      budget -= block.charactersRead
      const value = read(block)
      if (value !== undefined) {
        values.push(value)
        kept.push(text.slice(keptTo, start.textEnd))
        at = block.end
        keptTo = at
        continue
      }
    }
    fence = fenceAfter(line, fence)
    at += line.length + 1
  }
  if (values.length === 0) return { text: answer, values }
  return { text: [...kept, text.slice(keptTo)].join('').trim(), values }
}

type Start = {
  /** Where the text before the block ends. */
  readonly textEnd: number
  /** Where the JSON begins. */
  readonly json: number
  readonly mark: string | undefined
}

const openings = [
  /^[ \t]*(`{3,20}|~{3,20})[ \t]*(?:json[c5]?)?[ \t]*(?=$|[[{])/i,
  /(`{3,20}|~{3,20})[ \t]*json[c5]?[ \t]*(?=$|[[{])/i,
  /^[ \t]*(?=[[{])/,
]

const findStart = (text: string, line: string, at: number): Start | undefined => {
  for (const opening of openings) {
    const found = opening.exec(line)
    if (!found) continue
    const json = skipBlank(text, at + found.index + found[0].length)
    if (text[json] !== '{' && text[json] !== '[') continue
    return { textEnd: at + found.index, json, mark: found[1] }
  }
  return undefined
}

const readBlock = (text: string, { json: start, mark }: Start): FoundBlock => {
  const { json, stop } = readJson(text, start)
  const end = json === undefined ? undefined : stop
  const isFenced = mark !== undefined
  const close = isFenced ? findFenceEnd(text, end ?? start, mark) : undefined
  return {
    value: json === undefined ? undefined : parseJson(json),
    source: text.slice(start, end ?? close?.start),
    isFenced,
    end: close?.end ?? end ?? text.length,
    charactersRead: (isFenced ? (close?.end ?? text.length) : stop) - start,
  }
}

/** The next line that closes a fence. */
const findFenceEnd = (text: string, from: number, mark: string) => {
  for (let at = from; at < text.length;) {
    const next = text.indexOf('\n', at)
    const end = next === -1 ? text.length : next
    const fence = { mark, indent: '', language: '' }
    if (!fenceAfter(text.slice(at, end), fence)) return { start: at, end }
    at = end + 1
  }
  return undefined
}

const blank = /(?:\s+|\/\/[^\n]*|\/\*[^]{0,200}?\*\/)*/y
const word = /[\w.+-]+/y

const matchEnd = (pattern: RegExp, text: string, at: number): number => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

const skipBlank = (text: string, at: number): number =>
  /[\s/]/.test(text[at] ?? '') ? matchEnd(blank, text, at) : at

/**
 * The object or list at an offset as strict JSON, without comments and trailing commas; undefined when it has no
 * end. `stop` is where reading ended.
 */
const readJson = (
  text: string,
  start: number,
): { readonly json: string | undefined; readonly stop: number } => {
  const pieces: string[] = []
  const closers: string[] = []
  let at = start
  for (; at < text.length; at = skipBlank(text, at)) {
    const character = text[at] ?? ''
    let end = at + 1
    if (character === '"') {
      end = findStringEnd(text, at)
    } else if (character === '{' || character === '[') {
      closers.push(character === '{' ? '}' : ']')
    } else if (character === '}' || character === ']') {
      if (closers.pop() !== character) break
      if (pieces.at(-1) === ',') pieces.pop()
    } else if (character !== ',' && character !== ':') {
      end = matchEnd(word, text, at)
      if (end === at) break
    }
    const piece = text.slice(at, end)
    pieces.push(character === '"' ? toStrictString(piece) : piece)
    at = end
    if (closers.length === 0) return { json: pieces.join(''), stop: at }
  }
  return { json: undefined, stop: at }
}

const findStringEnd = (text: string, start: number): number => {
  let at = start + 1
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1
  return Math.min(at + 1, text.length)
}

/** Escapes line breaks, and backslashes that begin no escape, as in `\d`. */
const toStrictString = (text: string): string =>
  text
    .replaceAll(/\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})?/g, (found) => (found === '\\' ? '\\\\' : found))
    .replaceAll(/[\u0000-\u001f]/g, (found) => JSON.stringify(found).slice(1, -1))

/** The objects in a list that is damaged or cut; undefined for each that cannot be read. */
export const readObjects = (source: string): unknown[] => {
  const objects: unknown[] = []
  let budget = 2 * source.length
  let at = source.indexOf('{', source.indexOf('[') + 1)
  while (at !== -1 && budget > 0) {
    const { json, stop } = readJson(source, at)
    objects.push(json === undefined ? undefined : parseJson(json))
    budget -= stop - at
    at = source.indexOf('{', json === undefined ? at + 1 : stop)
  }
  return objects
}
