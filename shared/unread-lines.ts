import { isDeepStrictEqual } from 'node:util'
import { parse } from 'dotenv'
import { type Home, readSecretFile } from './home.ts'
import type { Warning } from './warning.ts'

/**
 * A warning where `.env` has lines that set nothing, as a name without `=`: they are passed over without a
 * word, and what was to be set is not. Of the lines only their numbers, as they may hold a secret. Throws
 * `home-insecure` when others can read the file.
 */
export const unreadLines = async (home: Home): Promise<Warning[]> => {
  const numbers = unreadIn((await readSecretFile(home.env)) ?? '')
  if (numbers.length === 0) return []
  const which = `${numbers.length === 1 ? 'line' : 'lines'} ${numbers.join(', ')}`
  return [
    {
      code: 'env-line-unread',
      detail: `.env: ${which} cannot be read as NAME=value, and ${numbers.length === 1 ? 'is' : 'are'} passed over`,
      hint: 'write NAME=value, or # in front of a note: doorward config edit env',
    },
  ]
}

/**
 * The numbers, from 1, of the first lines that set nothing and are no comments, five at most; a value may
 * have several lines.
 */
export const unreadIn = (text: string): number[] => {
  const lines = text.split(/\r\n?|\n/)
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

/** Neither blank, nor a comment, nor an assignment: one of these may be without effect, as a later one wins. */
const isOther = /^(?!\s*(#|$|(export\s+)?[\w.-]+(\s*=|:\s)))/
