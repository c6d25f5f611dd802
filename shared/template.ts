import { type DotPath, parseDotPath } from './dot-path.ts'
import { DoorwardError } from './errors.ts'

/** A template, taken apart once when the configuration is loaded. */
export type Template = {
  readonly source: string
  readonly parts: readonly (string | DotPath)[]
}

const placeholder = /\{\{([^{}]*)\}\}/g

/**
 * Takes `{{event}}` and `{{event.<path>}}` out of a text; everything else stays as it is.
 * Throws `config-invalid` for any other name between double braces: it would be a typing error.
 */
export const parseTemplate = (source: string): Template => {
  const parts: (string | DotPath)[] = []
  let end = 0
  for (const match of source.matchAll(placeholder)) {
    if (match.index > end) parts.push(source.slice(end, match.index))
    parts.push(pathOf(match[1]?.trim() ?? ''))
    end = match.index + match[0].length
  }
  if (end < source.length) parts.push(source.slice(end))
  return { source, parts }
}

const pathOf = (expression: string): DotPath => {
  if (expression === 'event') return []
  if (expression.startsWith('event.')) return parseDotPath(expression.slice('event.'.length))
  throw new DoorwardError(
    'config-invalid',
    `{{${expression}}} is unknown: only {{event}} and {{event.<path>}} can be used`,
  )
}
