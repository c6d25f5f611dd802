import { isDeepStrictEqual } from 'node:util'
import { parse } from 'dotenv'
import type { Warning } from './warning.ts'

/**
 * What is wrong with a `.env` of this text that is not UTF-8, or has lines that set nothing, as a name without
 * `=`: they are passed over without a word, and what was to be set is not. Of the lines only their numbers, as
 * they may hold a secret.
 */
export const unreadLines = (text: string): Pick<Warning, 'detail' | 'hint'> | undefined => {
  const strange = linesOf(text).findIndex((line) => /[\0\ufffd]/.test(line))
  if (strange >= 0)
    return {
      detail: `line ${strange + 1} is not UTF-8: another value is read than the one that was written`,
      hint: 'save it as UTF-8: doorward config edit env',
    }
  const numbers = unreadIn(text)
  if (numbers.length === 0) return undefined
  const [lines, are] = numbers.length === 1 ? ['line', 'is'] : ['lines', 'are']
  return {
    detail: `${lines} ${numbers.join(', ')} cannot be read as NAME=value, and ${are} passed over`,
    hint: 'write NAME=value, or # in front of a note: doorward config edit env',
  }
}

/**
 * The numbers, from 1, of the first lines that set nothing and are no comments, five at most; a value may
 * have several lines.
 */
export const unreadIn = (text: string): number[] => {
  const lines = linesOf(text)
  const set = parse(text)
  const isWithoutEffect = (index: number): boolean =>
    isDeepStrictEqual(parse(lines.toSpliced(index, 1).join('\n')), set)
  const numbers: number[] = []
  for (const [index, line] of lines.entries()) {
    if (isOther.test(line) && isWithoutEffect(index)) numbers.push(index + 1)
    if (numbers.length === 5) break
  }
  return numbers
}

const linesOf = (text: string): string[] => text.split(/\r\n?|\n/)

/** Neither blank, nor a comment, nor an assignment: one of these may be without effect, as a later one wins. */
const isOther = /^(?!\s*(#|$|(export\s+)?[\w.-]+(\s*=|:\s)))/
