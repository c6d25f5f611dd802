import { isDeepStrictEqual } from 'node:util'
import { DoorwardError } from '../shared/errors.ts'
import { readYaml } from '../shared/config/yaml.ts'

/** An entry of a list or a map of a configuration file, as text and as the value it is to have. */
export type Entry = {
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

const notAddable = (key: string): DoorwardError =>
  new DoorwardError('usage', `nothing can be added to ${key} the way it is written`, {
    hint: 'write it with one entry below the other, or add what --print prints by hand',
  })
