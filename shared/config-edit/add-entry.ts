import { isDeepStrictEqual } from 'node:util'
import { readYaml } from '../config/yaml.ts'
import { DoorwardError } from '../errors.ts'

/** An entry of a list or a map of a configuration file, as text and as the value it is to have. */
type Entry = {
  /** Its lines, without indentation; the first begins with `- ` in a list, with `name:` in a map. */
  readonly lines: readonly string[]
  /** The value of the whole list or map once it is there. */
  readonly expected: unknown
}

/**
 * Adds an entry at the end of the list or map under `key`, without touching a character of the rest:
 * comments, order, quotes and blank lines stay as they are. Returns the text, and the line of the entry.
 * Throws `usage` where that cannot be done, as for a list in brackets. Pure.
 */
export const addEntry = (
  text: string,
  key: string,
  { lines, expected }: Entry,
): { readonly text: string; readonly line: number } => {
  const found = readYaml('', text).collectionAt(key)
  if (found.form === 'flow' || /^(\.\.\.|---)\s*$/m.test(text)) throw notAddable(key)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const indent = ' '.repeat(found.form === 'block' ? found.indent : 2)
  const own = [
    ...(found.form === 'missing' ? [`${key}:`] : []),
    ...lines.map((line) => (line === '' ? '' : `${indent}${line}`)),
  ]
  const before =
    found.form === 'empty' ? `${text.slice(0, found.from)}${text.slice(found.to)}` : text
  const separator = before === '' || before.endsWith('\n') ? '' : eol
  const isApart = separator === '' && /(^|\n)\r?\n$/.test(before)
  const candidates = [
    ...(before === '' || isApart ? [] : [`${separator}${eol}`]),
    // A blank line could become a part of the text above it.
    separator,
  ].map((between) => ({
    head: `${before}${between}`,
    text: `${before}${between}${own.join(eol)}${eol}`,
  }))
  const added = candidates.find((candidate) => holds(candidate.text, key, expected))
  if (!added) throw notAddable(key)
  const line = added.head.split('\n').length + (found.form === 'missing' ? 1 : 0)
  return { text: added.text, line }
}

const holds = (text: string, key: string, expected: unknown): boolean => {
  const { value, problems } = readYaml('', text)
  return problems.length === 0 && isDeepStrictEqual(value, { [key]: expected })
}

/**
 * Adds keys with plain values to a map, behind its key `after`, without touching a character of the rest. Undefined
 * where that cannot be done, as for a map that is written by an alias. Pure.
 */
export const setInEntry = (
  text: string,
  path: readonly string[],
  after: string,
  keys: Readonly<Record<string, string>>,
): string | undefined => {
  const { value, problemAt } = readYaml('', text)
  const { line, column } = problemAt([...path, after], '')
  const lines = text.split('\n')
  const whole = lines[line - 1] ?? ''
  const [before, rest] = [whole.slice(0, column - 1), whole.slice(column - 1)]
  const [own] = /^[\w-]+: *[\w-]+(?=[\s,}]|$)/.exec(rest) ?? []
  if (own === undefined) return undefined
  const added = Object.entries(keys).map(([key, word]) => `${key}: ${word}`)
  const isBlock = before.trim() === ''
  const end = whole.endsWith('\r') ? '\r' : ''
  const now = isBlock
    ? [whole, ...added.map((one) => `${before}${one}${end}`)].join('\n')
    : `${before}${[own, ...added].join(', ')}${rest.slice(own.length)}`
  const changed = lines.with(line - 1, now).join('\n')
  const expected = structuredClone(value)
  const entry = path.reduce<unknown>(
    (map, key) => (map as Record<string, unknown> | undefined)?.[key],
    expected,
  )
  Object.assign(entry ?? {}, keys)
  const read = readYaml('', changed)
  const isRight = read.problems.length === 0 && isDeepStrictEqual(read.value, expected)
  return isRight ? changed : undefined
}

/**
 * Adds an entry to the map under a key: at the end of the file where the key is missing, else directly below the key.
 * Undefined where that cannot be done, as for a map in braces. Pure.
 */
export const addToMap = (
  text: string,
  key: string,
  { line, value }: { readonly line: string; readonly value: Readonly<Record<string, unknown>> },
): string | undefined => {
  const before = readYaml('', text)
  const found = before.collectionAt(key)
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const toChanged = (): string | undefined => {
    if (found.form === 'missing') {
      const end = text === '' || text.endsWith('\n') ? '' : eol
      return `${text}${end}${eol}${key}:${eol}  ${line}${eol}`
    }
    if (found.form !== 'block') return undefined
    const added = `${' '.repeat(found.indent)}${line}${eol === '\n' ? '' : '\r'}`
    return text
      .split('\n')
      .toSpliced(before.problemAt([key], '').line, 0, added)
      .join('\n')
  }
  const changed = toChanged()
  if (changed === undefined) return undefined
  const read = readYaml('', changed)
  const whole = (before.value ?? {}) as Keyed
  const expected = { ...whole, [key]: { ...(whole[key] as object | undefined), ...value } }
  const isRight = read.problems.length === 0 && isDeepStrictEqual(read.value, expected)
  return isRight ? changed : undefined
}

/**
 * Removes an item of a list in a configuration file, with the comments directly above it, without touching a character
 * of the rest. `path` leads to the item: `['webhooks', 2]`, `['webhooks', 0, 'rules', 1]`. A list that has no other
 * item becomes `[]`. Throws `usage` where that cannot be done, as for a list in brackets. Pure.
 */
export const removeItem = (text: string, path: readonly (string | number)[]): string => {
  const index = Number(path.at(-1))
  const list = path.slice(0, -1)
  const file = readYaml('', text)
  const expected = structuredClone(file.value)
  const items = list.reduce<unknown>((value, key) => (value as Keyed)[key], expected) as unknown[]
  items.splice(index, 1)
  const lines = text.split('\n')
  const indentAt = (line: number): number => (/^ *(?=- )/.exec(lines[line] ?? '') ?? [''])[0].length
  const start = file.problemAt(path, '').line - 1
  const indent = indentAt(start)
  const isInside = (line: string): boolean =>
    line.trim() === '' || line.length - line.trimStart().length > indent
  const after = lines.slice(start + 1).findIndex((line) => !isInside(line))
  const whole = lines.slice(start + 1, after === -1 ? lines.length : start + 1 + after)
  const end = start + 1 + whole.findLastIndex((line) => line.trim() !== '') + 1
  let from = start
  const isComment = (line: string) => line.startsWith(`${' '.repeat(indent)}#`)
  while (from > 0 && isComment(lines[from - 1] ?? '')) from -= 1
  if (from > 0 && lines[from - 1]?.trim() === '') from -= 1
  const isLast = items.length === 0
  const key = file.problemAt(list, '').line - 1
  const kept = isLast ? lines.with(key, (lines[key] ?? '').replace(/:\s*$/, ': []')) : lines
  // Comments of the file may stand between the key and its first item.
  const candidates = [from, start].map((first) => kept.toSpliced(first, end - first).join('\n'))
  const found = candidates.find((candidate) => {
    const { value, problems } = readYaml('', candidate)
    return problems.length === 0 && isDeepStrictEqual(value, expected)
  })
  if (found !== undefined) return found
  throw new DoorwardError('usage', 'the entry cannot be removed the way it is written', {
    hint: `remove it by hand: doorward config edit ${String(path[0])}`,
  })
}

type Keyed = Readonly<Record<string | number, unknown>>

const notAddable = (key: string): DoorwardError =>
  new DoorwardError('usage', `nothing can be added to ${key} the way it is written`, {
    hint: 'write it with one entry below the other, or add what --print prints by hand',
  })

/*
 * Values as YAML writes them, for entries that are added to a file of a person's own. Pure.
 */

const reserved = /^(true|false|null|yes|no|on|off|y|n)$/i

/** A text as a scalar that is read back as this text. */
export const yamlText = (text: string): string => {
  if (/^[A-Za-z_/][\w/.-]*$/.test(text) && !reserved.test(text)) return text
  // Other kinds of target and header are plain where they hold nothing that YAML means something by.
  if (/^[A-Za-z][\w-]*:[\w/@.-]+$/.test(text)) return text
  return /[\p{Cc}\p{Cf}]/u.test(text) ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`
}

/** The same where a number or a truth value means the same as its text. */
export const yamlScalar = (text: string): string =>
  /^(true|false|0|[1-9]\d{0,14})$/.test(text) ? text : yamlText(text)

/** One scalar, or a list of several in brackets. */
export const yamlOneOrList = (
  texts: readonly string[],
  write: (text: string) => string = yamlText,
): string => {
  const [first = ''] = texts
  return texts.length === 1 ? write(first) : `[${texts.map(write).join(', ')}]`
}

/** `key: |` and the lines of a text below it; in one line where a block could not hold it. */
export const yamlBlock = (key: string, text: string): string[] => {
  const isPlain = /^\S/.test(text) && !/[^\P{Cc}\n]|[\u2028\u2029\ufeff]/u.test(text)
  if (!isPlain) return [`${key}: ${JSON.stringify(text)}`]
  const ending = text.endsWith('\n') ? (text.endsWith('\n\n') ? '+' : '') : '-'
  const lines = text.replace(/\n$/, '').split('\n')
  return [`${key}: |${ending}`, ...lines.map((line) => (line === '' ? '' : `  ${line}`))]
}
