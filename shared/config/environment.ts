import { isDeepStrictEqual } from 'node:util'
import { parse } from 'dotenv'
import { type Home, readSecretFile } from '../home/home.ts'
import { warn, type Warning } from './warning.ts'

/**
 * The environment for secrets: the home's `.env`, which the process environment overrides. Throws
 * `home-insecure` when others can read the file.
 */
export const readEnvironment = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv = process.env,
): Promise<NodeJS.ProcessEnv> => {
  const text = await readSecretFile(home.env)
  // Without a prototype: a secret_env of toString must mean a variable.
  return Object.assign(
    Object.create(null) as NodeJS.ProcessEnv,
    text === undefined ? {} : parse(text),
    processEnv,
  )
}

/** The values of these variables that are more than white space. */
export const listSecrets = (names: readonly string[], env: NodeJS.ProcessEnv): string[] =>
  names.flatMap((name) => {
    // `constructor` is a valid name of a variable, and a property of every object.
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    return value === undefined || value.trim() === '' ? [] : [value]
  })

const envFile = { file: '.env' }

/** All problems with the lines of a `.env`. No message contains a value. */
export const envFileWarnings = (text: string): Warning[] => {
  const ignored = ignoredEnvLines(text)
  return [
    ...(ignored ? warn('env-line-unread', `.env: ${ignored.detail}`, ignored.hint, envFile) : []),
    ...changedValueWarnings(text),
  ]
}

/**
 * The problem of a `.env` that is not UTF-8, or has lines that set nothing, such as a name without `=`, which
 * dotenv ignores silently. Gives only the numbers of the lines: they may contain a secret.
 */
export const ignoredEnvLines = (text: string): Pick<Warning, 'detail' | 'hint'> | undefined => {
  const invalid = splitLines(text).findIndex((line) => /[\0\ufffd]/.test(line))
  if (invalid >= 0)
    return {
      detail: `line ${invalid + 1} is not UTF-8: its value is read wrong`,
      hint: 'save it as UTF-8: doorward config edit env',
    }
  const numbers = findIgnoredLines(text)
  if (numbers.length === 0) return undefined
  const [lines, are] = numbers.length === 1 ? ['line', 'is'] : ['lines', 'are']
  return {
    detail: `${lines} ${numbers.join(', ')} ${are} not of the form NAME=value, and ${are} ignored`,
    hint: 'write NAME=value, or # before a comment: doorward config edit env',
  }
}

/**
 * The numbers, from 1, of up to five lines that set nothing and are not comments. A value may span several
 * lines.
 */
export const findIgnoredLines = (text: string): number[] => {
  const lines = splitLines(text)
  const set = parse(text)
  const hasNoEffect = (index: number): boolean =>
    isDeepStrictEqual(parse(lines.toSpliced(index, 1).join('\n')), set)
  const numbers: number[] = []
  for (const [index, line] of lines.entries()) {
    if (notAssignment.test(line) && hasNoEffect(index)) numbers.push(index + 1)
    if (numbers.length === 5) break
  }
  return numbers
}

const splitLines = (text: string): string[] => text.split(/\r\n?|\n/)

/** Not blank, a comment or an assignment, which may have no effect because a later one wins. */
const notAssignment = /^(?!\s*(#|$|(export\s+)?[\w.-]+(\s*=|:\s)))/

/** Warns of values that dotenv cuts at a `#`; after a space it begins a comment, as its writer expects. */
export const changedValueWarnings = (text: string): Warning[] => {
  const set = parse(text)
  return splitLines(text).flatMap((source, index) => {
    const [, name] = cutValue.exec(source) ?? []
    // Otherwise a later line wins, or this one is part of a value of several lines.
    if (name === undefined || set[name] !== parse(source)[name]) return []
    return warn(
      'env-value-changed',
      `.env: line ${index + 1}: the value of ${name} ends at the # in it`,
      `write ${name}='…' with the whole value in quotes, or a space before the # of a comment: doorward config edit env`,
      envFile,
    )
  })
}

const cutValue = /^\s*(?:export\s+)?([\w.-]+)(?:\s*=|:\s)(?!\s*["'`])[^#]*(?<!\s)#/
