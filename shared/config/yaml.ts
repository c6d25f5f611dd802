import { isUtf8 } from 'node:buffer'
import {
  type Document,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  LineCounter,
  type Node,
  parseDocument,
  visit,
  type YAMLError,
} from 'yaml'

/** One thing wrong in one place; `line` and `column` count from 1, as editors do. */
export type Problem = {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly key: string
  readonly reason: string
  readonly hint?: string
}

export type YamlPath = readonly (string | number)[]

/** A parsed file: its plain value, and the place of every key in it. */
export type YamlFile = {
  /** Null for a file that cannot be read; of a key that is there twice, what stands last. */
  readonly value: unknown
  readonly isReadable: boolean
  readonly problems: readonly Problem[]
  /** How what stands under a key of the whole file is written, for adding to it. */
  readonly collectionAt: (key: string) => Collection
  /** How a value without quotes is written at a path: `1.10`, which is read as 1.1. */
  readonly plainTextAt: (path: YamlPath) => string | undefined
  /** The problem at a path; with `key`, at that key of the map there rather than at the value. */
  readonly problemAt: (path: YamlPath, reason: string, hint?: string) => Problem
}

/**
 * A list or map in the text of a file: not there, without anything in it (`from` to `to` is what stands
 * for that: `[]`, `null` or nothing), one entry a line with so many spaces before it, or in brackets.
 * Offsets count characters.
 */
export type Collection =
  | { readonly form: 'missing' }
  | { readonly form: 'empty'; readonly from: number; readonly to: number }
  | { readonly form: 'block'; readonly indent: number }
  | { readonly form: 'flow' }

/**
 * Reads YAML 1.2 strictly: no duplicate keys, no unknown tags, no alias bombs, no `__proto__`.
 * What is wrong comes back as problems with its place; nothing is thrown.
 */
export const readYaml = (file: string, text: string): YamlFile => {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })

  const place = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { file, line: Math.max(line, 1), column: Math.max(col, 1) }
  }
  const problemAt = (path: YamlPath, reason: string, hint?: string): Problem => ({
    ...place(findOffset(document, path)),
    key: keyText(path),
    reason,
    ...(hint === undefined ? {} : { hint }),
  })

  const problems: Problem[] = [...document.errors, ...document.warnings].map((error) => ({
    ...place(error.pos[0]),
    key: '',
    reason: describeReason(error, text),
  }))
  const refuse = (node: unknown, key: string, reason: string) =>
    problems.push({ ...place(rangeStart(node) ?? 0), key, reason })

  // A key that is there twice is a fault, and hides no other.
  const isReadable = (): boolean =>
    problems.length === document.errors.filter(({ code }) => code === 'DUPLICATE_KEY').length
  let value: unknown = null
  try {
    visit(document, {
      Pair: (_, { key }) => {
        // Also an alias, which could stand for any name, and a list or map as a key.
        if (key !== null && !isScalar(key)) refuse(key, '', reasonOfKey(key, text))
        else if (key?.value === '__proto__') refuse(key, '__proto__', 'this name is not allowed')
      },
      Alias: (_, alias) => {
        if (!alias.resolve(document)) refuse(alias, '', `there is no anchor &${alias.source}`)
      },
    })
    if (isReadable()) value = document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    refuse(undefined, '', unreadable(error))
  }
  return {
    value,
    isReadable: isReadable(),
    problems: oneALine(problems),
    problemAt,
    collectionAt: (key) => collectionIn(document, key, lines),
    plainTextAt: (path) => {
      const node: unknown = document.getIn(path, true)
      return isScalar(node) && node.type === 'PLAIN' ? node.source : undefined
    },
  }
}

const collectionIn = (document: Document, key: string, lines: LineCounter): Collection => {
  const node: unknown = document.contents && 'get' in document ? document.get(key, true) : undefined
  if (!isNode(node)) return { form: 'missing' }
  const isEmpty = isCollection(node)
    ? node.items.length === 0
    : isScalar(node) && node.value === null
  const [from = 0, to = 0] = node.range ?? []
  if (isEmpty) return { form: 'empty', from, to }
  if (!isCollection(node) || node.flow) return { form: 'flow' }
  // Of a list the place of its first dash, of a map that of its first key.
  return { form: 'block', indent: lines.linePos(from).col - 1 }
}

/** What follows on the first fault of a line is as a rule no fault of its own. */
const oneALine = (problems: readonly Problem[]): Problem[] => {
  const lines = new Set<number>()
  return problems.filter(({ line }) => !lines.has(line) && lines.add(line))
}

const notIndented = 'this line is not indented like those it belongs to'
const noPair =
  'not of the form "key: value" (a space follows the colon; a text of more lines is indented below its key)'

/** What the parser says to programmers, and how we say it. */
const words: readonly (readonly [RegExp, string])[] = [
  [/^missing closing (["'])quote$/i, 'a text that begins with $1 has no end'],
  [/^all \w+ items must start at the same column$/i, notIndented],
  [/^a block sequence may not be used as an implicit map key$/i, notIndented],
  [/^sequence item without - indicator$/i, notIndented],
  [/^flow \w+ in block collection must .* and end with a (.)$/i, 'a $1 is missing before this'],
  [/^implicit map keys need to be followed by map values$/i, noPair],
  [/^implicit keys need to be on a single line$/i, noPair],
  [/^nested mappings are not allowed in compact mappings$/i, 'a text with ": " in it needs quotes'],
  [/^plain value cannot start with .* character (.)$/i, 'a text that begins with $1 needs quotes'],
  [/^unexpected \S+ at node end$/i, 'the value before this has ended; is a quote misplaced?'],
]

const describeReason = ({ code, message, pos }: YAMLError, text: string): string => {
  if (code === 'DUPLICATE_KEY') {
    const [key] = /^[\w-]{1,40}/.exec(text.slice(pos[0])) ?? []
    return key === undefined ? 'this key is there twice' : `the key ${key} is there twice`
  }
  if (code === 'MULTIPLE_DOCS') return 'a second document begins here, only one can be read'
  if (code === 'TAB_AS_INDENT') return 'a tab cannot indent, use spaces'
  if (code === 'RESOURCE_EXHAUSTION') return 'nested too deeply'
  const [pattern, ours] = words.find(([known]) => known.test(message)) ?? []
  return pattern && ours !== undefined ? message.replace(pattern, ours) : lowerFirst(message)
}

const reasonOfKey = (key: unknown, text: string): string => {
  const start = rangeStart(key)
  const isTemplate = start !== undefined && text.slice(start - 1, start + 1) === '{{'
  return isTemplate ? 'a text that begins with {{ needs quotes' : 'a key must be plain text'
}

const unreadable = (error: unknown): string => {
  if (error instanceof RangeError) return 'nested too deeply'
  return error instanceof ReferenceError && error.message.startsWith('Excessive alias count')
    ? 'aliases expand to more than 100 values, write the values out'
    : 'cannot be read as YAML'
}

/** `webhooks.0.path` is written `webhooks[0].path`, and a name with other characters `filter["a.b"]`. */
const keyText = (path: YamlPath): string =>
  path.reduce<string>((text, name) => {
    if (typeof name === 'number') return `${text}[${name}]`
    if (!/^[\w-]+$/.test(name)) return `${text}[${JSON.stringify(name)}]`
    return text === '' ? name : `${text}.${name}`
  }, '')

/** Where a key stands; for a path that is not there, where its nearest parent stands. */
const findOffset = (document: Document, path: YamlPath): number => {
  let node: unknown = document.contents
  let offset = rangeStart(node) ?? 0
  for (const name of path) {
    if (!isNode(node)) break
    const pair = isMap(node)
      ? node.items.findLast(
          (item) => isPair(item) && isScalar(item.key) && String(item.key.value) === String(name),
        )
      : undefined
    const next = pair
      ? pair.value
      : document.contents && 'get' in node
        ? getItem(node, name)
        : undefined
    const start = pair ? rangeStart(pair.key) : rangeStart(next)
    if (start === undefined) break
    offset = start
    node = next
  }
  return offset
}

const getItem = (node: Node, name: string | number): unknown =>
  'items' in node && Array.isArray(node.items) ? node.items[Number(name)] : undefined

const rangeStart = (node: unknown): number | undefined =>
  isNode(node) ? (node.range?.[0] ?? undefined) : undefined

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

/**
 * Reads YAML from the bytes of a file, as `readYaml` does. Bytes that are no UTF-8 are a problem with its
 * place: read all the same, another letter would stand in a filter or a prompt than the one that was
 * written, and be written back so. `text` is what was read, byte for byte.
 */
export const readYamlBytes = (
  file: string,
  bytes: Buffer,
): YamlFile & { readonly text: string } => {
  const text = bytes.toString('utf8')
  // A NUL is allowed in UTF-8 and not in YAML, and every other byte of UTF-16 is one.
  if (isUtf8(bytes) && !bytes.includes(0)) return { ...readYaml(file, text), text }
  return { ...readYaml(file, ''), text, isReadable: false, problems: [problemIn(file, bytes)] }
}

const problemIn = (file: string, bytes: Buffer): Problem => {
  const hint = 'save it as UTF-8'
  const isUtf16 = /^(\xff\xfe|\xfe\xff|\0.|.\0)/s.test(bytes.toString('latin1', 0, 2))
  if (isUtf16) return { file, line: 1, column: 1, key: '', reason: 'the file is UTF-16', hint }
  // One character a byte, so that the line ends stand where they are.
  const lines = bytes.toString('latin1').split('\n')
  const wrong = lines.findIndex((line) => isNoText(Buffer.from(line, 'latin1')))
  const shown = Buffer.from(lines[wrong] ?? '', 'latin1').toString('utf8')
  const column = Math.max(shown.search(/[\ufffd\0]/), 0) + 1
  return { file, line: wrong + 1, column, key: '', reason: 'what stands here is no UTF-8', hint }
}

const isNoText = (line: Buffer): boolean => !isUtf8(line) || line.includes(0)
