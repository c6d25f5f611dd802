import { isDeepStrictEqual } from 'node:util'
import { parse } from 'dotenv'
import { type Home, readSecretFile } from '../home/home.ts'
import type { Warning } from './warning.ts'

/**
 * The variables that secrets are looked up in: the home's `.env`, over which the process environment
 * wins. Throws `home-insecure` when others can read the file.
 */
export const readEnvironment = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv = process.env,
): Promise<NodeJS.ProcessEnv> => {
  const text = await readSecretFile(home.env)
  // Without a prototype: secret_env may name toString, and means a variable.
  return Object.assign(
    Object.create(null) as NodeJS.ProcessEnv,
    text === undefined ? {} : parse(text),
    processEnv,
  )
}

/** The values of these variables that are set to more than white space. */
export const listSecrets = (names: readonly string[], env: NodeJS.ProcessEnv): string[] =>
  names.flatMap((name) => {
    // Own ones only: `constructor` is a valid name of a variable, and of something every object has.
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    return value === undefined || value.trim() === '' ? [] : [value]
  })

/**
 * What is wrong with a `.env` of this text that is not UTF-8, or has lines that set nothing, as a name without
 * `=`: they are passed over without a word, and what was to be set is not. Of the lines only their numbers, as
 * they may hold a secret.
 */
export const ignoredEnvLines = (text: string): Pick<Warning, 'detail' | 'hint'> | undefined => {
  const strange = splitLines(text).findIndex((line) => /[\0\ufffd]/.test(line))
  if (strange >= 0)
    return {
      detail: `line ${strange + 1} is not UTF-8: another value is read than the one that was written`,
      hint: 'save it as UTF-8: doorward config edit env',
    }
  const numbers = findIgnoredLines(text)
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
export const findIgnoredLines = (text: string): number[] => {
  const lines = splitLines(text)
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

const splitLines = (text: string): string[] => text.split(/\r\n?|\n/)

/** Neither blank, nor a comment, nor an assignment: one of these may be without effect, as a later one wins. */
const isOther = /^(?!\s*(#|$|(export\s+)?[\w.-]+(\s*=|:\s)))/
