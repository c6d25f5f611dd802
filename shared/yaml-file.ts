import {
  LineCounter,
  type Node,
  type Document,
  isMap,
  isNode,
  isPair,
  isScalar,
  parseDocument,
  visit,
} from 'yaml'
import { systemCode } from './errors.ts'

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
  readonly value: unknown
  readonly problems: readonly Problem[]
  /** The problem at a path; with `key`, at that key of the map there rather than at the value. */
  readonly problemAt: (path: YamlPath, reason: string, hint?: string) => Problem
}

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
    ...place(offsetOf(document, path)),
    key: keyText(path),
    reason,
    ...(hint === undefined ? {} : { hint }),
  })

  const problems: Problem[] = [...document.errors, ...document.warnings].map((error) => ({
    ...place(error.pos[0]),
    key: '',
    reason: lowerFirst(error.message),
  }))
  visit(document, {
    Pair: (_, pair) => {
      if (isScalar(pair.key) && pair.key.value === '__proto__')
        problems.push({
          ...place(pair.key.range?.[0] ?? 0),
          key: '__proto__',
          reason: 'this name is not allowed',
        })
    },
  })

  let value: unknown = null
  if (problems.length === 0) {
    try {
      value = document.toJS({ maxAliasCount: 100 })
    } catch (error) {
      const bomb = error instanceof ReferenceError && error.message.includes('alias')
      problems.push({
        ...place(0),
        key: '',
        reason: bomb
          ? 'aliases expand to too much (more than 100 times the nodes): write the values out'
          : `cannot be read (${systemCode(error) ?? 'yaml'})`,
      })
    }
  }
  return { value, problems, problemAt }
}

/** `webhooks.0.path` is written `webhooks[0].path`. */
const keyText = (path: YamlPath): string =>
  path.reduce<string>(
    (text, name) =>
      typeof name === 'number' ? `${text}[${name}]` : text === '' ? name : `${text}.${name}`,
    '',
  )

/** Where a key stands; for a path that is not there, where its nearest parent stands. */
const offsetOf = (document: Document, path: YamlPath): number => {
  let node: unknown = document.contents
  let offset = rangeStart(node) ?? 0
  for (const name of path) {
    if (!isNode(node)) break
    const pair = isMap(node)
      ? node.items.find(
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
