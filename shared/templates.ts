import { DoorwardError } from './errors.ts'
import { parsePath, type Path } from './paths.ts'

/** A parsed template. */
export type Template = {
  readonly source: string
  readonly parts: readonly (string | Path)[]
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
  const parts: (string | Path)[] = []
  const wrong = new Set<string>()
  let end = 0
  for (const match of source.matchAll(placeholder)) {
    if (match.index > end) parts.push(source.slice(end, match.index))
    const expression = match[1]?.trim() ?? ''
    try {
      parts.push(parsePlaceholder(expression))
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

const parsePlaceholder = (expression: string): Path => {
  if (expression === 'event') return []
  if (expression.startsWith('event.')) return parsePath(expression.slice('event.'.length))
  if (expression.startsWith('event[')) return parsePath(expression.slice('event'.length))
  throw new DoorwardError('config-invalid', 'only {{event}} and {{event.<path>}} can be used')
}
