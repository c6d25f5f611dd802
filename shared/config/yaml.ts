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

/** A problem and its position; `line` and `column` count from 1. */
export type Problem = {
  readonly file: string
  readonly line: number
  readonly column: number
  readonly key: string
  readonly reason: string
  readonly hint?: string
}

export type YamlPath = readonly (string | number)[]

/** A parsed file: its plain value, and the positions of its keys. */
export type YamlFile = {
  /** Null for a file that cannot be read. The last value of a duplicate key wins. */
  readonly value: unknown
  readonly isReadable: boolean
  readonly problems: readonly Problem[]
  /** How the list or map of a top-level key is written, for adding to it. */
  readonly collectionAt: (key: string) => Collection
  /** The source text of an unquoted value: `1.10`, which is read as 1.1. */
  readonly plainTextAt: (path: YamlPath) => string | undefined
  /** A problem at the key of this path. */
  readonly problemAt: (path: YamlPath, reason: string, hint?: string) => Problem
}

/**
 * How a list or map is written: `empty` as `[]`, `null` or nothing between the offsets `from` and `to`, in
 * characters; `block` with an entry per line, indented by so many spaces; `flow` in brackets.
 */
export type Collection =
  | { readonly form: 'missing' }
  | { readonly form: 'empty'; readonly from: number; readonly to: number }
  | { readonly form: 'block'; readonly indent: number }
  | { readonly form: 'flow' }

/**
 * Parses YAML 1.2 strictly: no duplicate keys, no unknown tags, no alias bombs, no `__proto__`. Returns
 * problems with their positions, and never throws.
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

  const continued = document.errors.filter(
    ({ code, pos }) =>
      code === 'MULTILINE_IMPLICIT_KEY' &&
      document.errors.some((other) => other.code === nestedKey && other.pos[0] === pos[0]),
  )
  const problems: Problem[] = [...document.errors, ...document.warnings]
    // A line that is indented too far continues the value before it: the parser reports both.
    .filter(
      ({ code, pos }) => code !== nestedKey || !continued.some((line) => line.pos[0] === pos[0]),
    )
    .map((error) => {
      const isContinued = continued.includes(error)
      return {
        ...place(isContinued ? lineStart(text, error.pos[1]) : error.pos[0]),
        key: '',
        reason: isContinued ? tooFarIn : describeReason(error, text),
      }
    })
  const refuse = (node: unknown, key: string, reason: string) =>
    problems.push({ ...place(rangeStart(node) ?? 0), key, reason })

  // A duplicate key is an error, but the rest of the file can be checked.
  const isReadable = (): boolean =>
    problems.length === document.errors.filter(({ code }) => code === 'DUPLICATE_KEY').length
  let value: unknown = null
  try {
    visit(document, {
      Pair: (_, { key }) => {
        // An alias as a key could stand for any name; lists and maps cannot be keys.
        if (key !== null && !isScalar(key)) refuse(key, '', describeKey(key, text))
        else if (key?.value === '__proto__') refuse(key, '__proto__', 'this name is not allowed')
      },
      Alias: (_, alias) => {
        if (!alias.resolve(document)) refuse(alias, '', `unknown anchor &${alias.source}`)
      },
    })
    if (isReadable()) value = document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    refuse(undefined, '', describeFailure(error))
  }
  return {
    value,
    isReadable: isReadable(),
    problems: firstPerLine(problems),
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
  // The column of the first dash of a list, or of the first key of a map.
  return { form: 'block', indent: lines.linePos(from).col - 1 }
}

/** Later problems of a line usually follow from the first. */
const firstPerLine = (problems: readonly Problem[]): Problem[] => {
  const lines = new Set<number>()
  return problems.filter(({ line }) => !lines.has(line) && lines.add(line))
}

const notIndented = 'this line is not indented like its siblings'
/** The parser's code for `a: b: c`. */
const nestedKey = 'BLOCK_AS_IMPLICIT_KEY'
const tooFarIn =
  'this line is indented further than its siblings, so it continues the value of the line before (a text with ": " in it needs quotes)'
const noPair =
  'not of the form "key: value" (put a space after the colon; indent a text of several lines below its key)'

/** Messages of the parser, and ours for users. */
const messages: readonly (readonly [RegExp, string])[] = [
  [/^missing closing (["'])quote$/i, 'a text that begins with $1 is not closed'],
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

/** The offset of the first character of a line that is no space. */
const lineStart = (text: string, offset: number): number => {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  return start + (/^ */.exec(text.slice(start))?.[0].length ?? 0)
}

const describeReason = ({ code, message, pos }: YAMLError, text: string): string => {
  if (code === 'DUPLICATE_KEY') {
    const [key] = /^[\w-]{1,40}/.exec(text.slice(pos[0])) ?? []
    return key === undefined ? 'this key is defined twice' : `the key ${key} is defined twice`
  }
  if (code === 'MULTIPLE_DOCS') return 'a second document begins here, only one is allowed'
  if (code === 'TAB_AS_INDENT') return 'a tab cannot indent, use spaces'
  if (code === 'RESOURCE_EXHAUSTION') return 'nested too deeply'
  const [pattern, ours] = messages.find(([known]) => known.test(message)) ?? []
  return pattern && ours !== undefined ? message.replace(pattern, ours) : lowerFirst(message)
}

const describeKey = (key: unknown, text: string): string => {
  const start = rangeStart(key)
  const isTemplate = start !== undefined && text.slice(start - 1, start + 1) === '{{'
  return isTemplate ? 'a text that begins with {{ needs quotes' : 'a key must be plain text'
}

const describeFailure = (error: unknown): string => {
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

/** The offset of a key; for a missing path, of its nearest existing parent. */
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
 * As `readYaml`, from the bytes of a file. Bytes that are not UTF-8 are a problem: read anyway, a filter or a
 * prompt would contain another letter, which an edit would write back. `text` has every byte.
 */
export const readYamlBytes = (
  file: string,
  bytes: Buffer,
): YamlFile & { readonly text: string } => {
  const text = bytes.toString('utf8')
  // NUL is allowed in UTF-8 but not in YAML; every other byte of UTF-16 is NUL.
  if (isUtf8(bytes) && !bytes.includes(0)) return { ...readYaml(file, text), text }
  return {
    ...readYaml(file, ''),
    text,
    isReadable: false,
    problems: [
      {
        file,
        line: 1,
        column: 1,
        key: '',
        reason: 'the file is not UTF-8',
        hint: 'save it as UTF-8',
      },
    ],
  }
}
