import { headerNameForm } from './config/name-forms.ts'
import { DoorwardError } from './errors.ts'
import { formatPath, parsePath, type Path } from './paths.ts'
import { presetSchemes } from './signatures/presets.ts'

/** A parsed template. Its paths begin with `event`, `headers`, `webhook` or `delivery`. */
export type Template = {
  readonly source: string
  readonly parts: readonly (string | Path)[]
}

/** True for a template without placeholders. */
export const isFixed = ({ parts }: Template): boolean =>
  parts.every((part) => typeof part === 'string')

/** The paths of a template's placeholders. */
export const pathsIn = ({ parts }: Template): Path[] =>
  parts.filter((part) => typeof part !== 'string')

/** The names of the headers that these paths read, as they are written there. */
export const headerNamesIn = (paths: readonly Path[]): string[] => [
  ...new Set(
    paths.flatMap(([root, name]) => (root === 'headers' && typeof name === 'string' ? [name] : [])),
  ),
]

const placeholder = /\{\{([^{}]*)\}\}/g

/**
 * Parses `{{event}}`, `{{event.<path>}}` and the few other values of a delivery; other text is literal. Throws
 * `config-invalid` with all other names between double braces.
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
  if (!/^(event|headers|webhook|delivery)([.[]|$)/.test(expression)) throw unknownName()
  const path = parsePath(expression)
  checkScopePath(path)
  const [root, name] = path
  return root === 'headers' && typeof name === 'string' ? [root, name.toLowerCase()] : path
}

/** Throws `config-invalid` for a path to a value that a delivery does not have. */
export const checkScopePath = (path: Path): void => {
  const [root, name = ''] = path
  if (root === 'event' || fixedPaths.has(formatPath(path))) return
  if (root !== 'headers') throw unknownName()
  if (path.length !== 2 || typeof name !== 'string' || !headerNameForm.test(name))
    throw new DoorwardError('config-invalid', 'write headers.<name>, the name of one header')
  if (secretHeaders.has(name.toLowerCase()))
    throw new DoorwardError('config-invalid', 'this header holds a secret or a signature')
}

/** Headers with a secret or a signature, which belong in no prompt. */
const secretHeaders = new Set([
  'authorization',
  'proxy-authorization',
  'cookie',
  'set-cookie',
  ...presetSchemes.flatMap(({ forms }) => forms.map(({ header }) => header)),
])

const fixedPaths = new Set(['webhook.path', 'delivery.id', 'delivery.received_at'])

const unknownName = () =>
  new DoorwardError(
    'config-invalid',
    `only event, event.<path>, headers.<name>, ${[...fixedPaths].join(', ')} can be used`,
  )
