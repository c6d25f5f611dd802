import { DoorwardError } from './errors.ts'

/** A parsed template. */
export type Template = {
  readonly source: string
  readonly parts: readonly (string | DotPath)[]
}

/** True for a template without placeholders. */
export const isFixed = ({ parts }: Template): boolean =>
  parts.every((part) => typeof part === 'string')

const placeholder = /\{\{([^{}]*)\}\}/g

/**
 * Parses `{{event}}` and `{{event.<path>}}`; other text is literal. Throws `config-invalid` with all other
 * names between double braces.
 */
export const parseTemplate = (source: string): Template => {
  const parts: (string | DotPath)[] = []
  const wrong = new Set<string>()
  let end = 0
  for (const match of source.matchAll(placeholder)) {
    if (match.index > end) parts.push(source.slice(end, match.index))
    const expression = match[1]?.trim() ?? ''
    try {
      parts.push(parsePath(expression))
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      wrong.add(`{{${expression}}}: ${error.message}`)
    }
    end = match.index + match[0].length
  }
  if (end < source.length) parts.push(source.slice(end))
  if (wrong.size > 0) throw new DoorwardError('config-invalid', [...wrong].join('; '))
  return { source, parts }
}

const parsePath = (expression: string): DotPath => {
  if (expression === 'event') return []
  if (expression.startsWith('event.')) return parseDotPath(expression.slice('event.'.length))
  throw new DoorwardError('config-invalid', 'only {{event}} and {{event.<path>}} can be used')
}

/** A path into a payload: `pull_request.head.sha`, `commits.0.message`. Empty means the whole payload. */
export type DotPath = readonly string[]

/** True for a valid name in a path. */
export const isPathName = (name: string): boolean => name !== '' && !name.includes('.')

/** Splits `a.b.0` into its names. Throws `config-invalid` for an empty name. */
export const parseDotPath = (text: string): DotPath => {
  if (text === '') throw new DoorwardError('config-invalid', 'the path is empty')
  const names = text.split('.')
  if (names.includes(''))
    throw new DoorwardError('config-invalid', `path "${text}" has an empty name between its dots`)
  return names
}

/** True for `event.a.b`, the form in a prompt, where `event` is the payload. */
export const startsWithEvent = (path: DotPath): boolean => path.length > 1 && path[0] === 'event'
