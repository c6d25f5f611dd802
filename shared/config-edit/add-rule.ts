import { isDeepStrictEqual } from 'node:util'
import { readYaml } from '../config/yaml.ts'
import { DoorwardError } from '../errors.ts'

type Entry = Readonly<Record<string, unknown>>

/** A rule as text, whose first line begins with `- `, and as the value it is to have. */
type NewRule = { readonly lines: readonly string[]; readonly value: Entry }

/**
 * Adds a rule at the end of the `rules` of an entry of webhooks.yaml, without touching a character of the rest.
 * Returns the text, and the line of the rule. Throws `usage` where that cannot be done. Pure.
 */
export const addRule = (
  text: string,
  index: number,
  { lines, value }: NewRule,
): { readonly text: string; readonly line: number } => {
  const file = readYaml('', text)
  const { webhooks: entries = [] } = (file.value ?? {}) as { readonly webhooks?: Entry[] }
  const rules = (entries[index]?.['rules'] ?? []) as readonly Entry[]
  const expected = {
    webhooks: entries.with(index, { ...entries[index], rules: [...rules, value] }),
  }
  const at = file.problemAt(['webhooks', index, 'rules'], '')
  const all = text.split('\n')
  const head = all[at.line - 1] ?? ''
  const column = at.column - 1
  const eol = head.endsWith('\r') ? '\r' : ''
  const isEmpty = rules.length === 0
  // The rules end where a line begins that is no deeper; blank lines and comments before it belong to what follows.
  const rest = all.slice(at.line)
  const next = rest.findIndex(
    (line) => /\S/.test(line) && indentOf(line) <= column && !/^\s*- /.test(line),
  )
  const inside = rest.slice(0, next === -1 ? rest.length : next)
  const last = inside.findLastIndex((line) => /^\s*[^\s#]/.test(line))
  const first = inside.find((line) => /^\s*- /.test(line))
  const indent = ' '.repeat(first === undefined ? column + 2 : indentOf(first))
  const own = lines.map((line) => `${line === '' ? '' : indent}${line}${eol}`)
  const place = isEmpty ? at.line : at.line + last + 1
  const before = isEmpty ? all.with(at.line - 1, `${' '.repeat(column)}rules:${eol}`) : all
  const changed = before.toSpliced(place, 0, ...own).join('\n')
  const read = readYaml('', changed)
  if (read.problems.length === 0 && isDeepStrictEqual(read.value, expected))
    return { text: changed, line: place + 1 }
  throw new DoorwardError('usage', 'no rule can be added to this entry the way it is written', {
    hint: 'write its rules one below the other, or add what --print prints by hand',
  })
}

const indentOf = (line: string): number => line.length - line.trimStart().length
