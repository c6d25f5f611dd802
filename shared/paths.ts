import { DoorwardError } from './errors.ts'

/** `[*]`: every item of a list. */
export const each = Symbol('each')

/** A path into a payload. Empty means the whole payload. */
export type Path = readonly (string | typeof each)[]

const quotedName = /^\[("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\]/
const index = /^\[(0|[1-9]\d{0,9})\]/
const plainName = /^[^.[\]"'][^.[\]]*/
/** Needs quotes: another language gives it a meaning. */
const foreign = /[*|]|^-\d+$/

/**
 * Parses `pull_request.head.sha`, `commits[0].id` (or `commits.0.id`), `labels[*].name` and
 * `labels["app.kubernetes.io/name"]`. Throws `config-invalid` for anything else.
 */
export const parsePath = (text: string): Path => {
  if (text === '') throw new DoorwardError('config-invalid', 'the path is empty')
  const path: (string | typeof each)[] = []
  let rest = text
  while (rest !== '') {
    const isFirst = path.length === 0
    const bracket = parseBracket(rest)
    if (bracket) {
      path.push(bracket.name)
      rest = rest.slice(bracket.length)
      continue
    }
    if (!isFirst && !rest.startsWith('.')) throw invalid(text)
    if (!isFirst) rest = rest.slice(1)
    const [name = ''] = plainName.exec(rest) ?? []
    const isRoot = name === '$' && isFirst && rest !== name
    if (name === '' || foreign.test(name) || isRoot) throw invalid(text)
    path.push(name)
    rest = rest.slice(name.length)
  }
  return path
}

type Bracket = { readonly name: string | typeof each; readonly length: number }

const parseBracket = (rest: string): Bracket | undefined => {
  if (rest.startsWith('[*]')) return { name: each, length: 3 }
  const [whole, digits] = index.exec(rest) ?? []
  if (whole !== undefined && digits !== undefined) return { name: digits, length: whole.length }
  const [quoted, name] = quotedName.exec(rest) ?? []
  if (quoted === undefined || name === undefined) return undefined
  return { name: unquote(name), length: quoted.length }
}

/** The text between quotes, where a backslash precedes a quote or a backslash. */
const unquote = (quoted: string): string => quoted.slice(1, -1).replaceAll(/\\(.)/g, '$1')

const invalid = (text: string) =>
  new DoorwardError(
    'config-invalid',
    `path "${text}" cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"]`,
  )

/** The text of a path, with quotes where a name needs them. */
export const formatPath = (path: Path): string =>
  path
    .map((name, position) => {
      if (name === each) return '[*]'
      if (!isPlain(name)) return `["${name.replaceAll(/["\\]/g, String.raw`\$&`)}"]`
      return position === 0 ? name : `.${name}`
    })
    .join('')

const isPlain = (name: string): boolean =>
  plainName.exec(name)?.[0] === name && !foreign.test(name) && !/\s|^\$$/.test(name)

/** The text of a path below a root: `event.a`, `event["a.b"]`, or `event` for the empty path. */
export const formatBelow = (root: string, path: Path): string => formatPath([root, ...path])

/** True for `event.a.b`, the form in a prompt, where `event` is the payload. */
export const startsWithEvent = (path: Path): boolean => path.length > 1 && path[0] === 'event'
