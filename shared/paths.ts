import { DoorwardError } from './errors.ts'

/** `[*]`: every item of a list. */
export const each = Symbol('each')

/** A path into a payload. Empty means the whole payload. */
export type Path = readonly (string | typeof each)[]

const quotedName = /^\[("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\]/
const index = /^\[(0|[1-9]\d{0,9})\]/
const plainName = /^[^.[\]"'][^.[\]]*/

/**
 * Parses `pull_request.head.sha`, `commits[0].id` (or `commits.0.id`), `labels[*].name` and
 * `labels["app.kubernetes.io/name"]`. Throws `config-invalid` with the right form for anything else.
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
    if (rest.startsWith('[')) throw invalid(text, describeBracket(text, rest))
    if (!isFirst) {
      if (!rest.startsWith('.')) throw invalid(text, `needs a dot or a [ before "${rest}"`)
      rest = rest.slice(1)
    }
    const [name = ''] = plainName.exec(rest) ?? []
    if (name === '') {
      if (rest === '' || rest.startsWith('.'))
        throw invalid(text, 'has an empty name between its dots')
      throw invalid(
        text,
        rest.startsWith('[')
          ? `has a dot before a [: write ${text.replaceAll('.[', '[')}`
          : `cannot be read from ${rest} on: ${quoteHint}`,
      )
    }
    const fault = findNameFault(name, text, isFirst && rest !== name)
    if (fault !== undefined) throw invalid(text, fault)
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

const quoteHint = 'a name with . [ ] * or | in it is written ["name"]'

const describeBracket = (text: string, rest: string): string => {
  const inside = /^\[([^[\]]*)\]/.exec(rest)?.[1]?.trim()
  if (inside === undefined) return `has a [ without its ]: ${quoteHint}`
  if (inside === '')
    return `has nothing between [ and ]: ${text.replaceAll('[]', '[*]')} is any item`
  if (/^-\d+$/.test(inside)) return 'cannot count from the end of a list: [0] is the first item'
  if (/^[\w./-]+$/.test(inside)) return `needs quotes: ["${inside}"]`
  return 'can have [0] for an item, [*] for any item and ["name"] for a name with dots, nothing else'
}

const findNameFault = (name: string, text: string, isBeforeOthers: boolean): string | undefined => {
  if (name === '*')
    return `has * between its dots: write ${text.replaceAll(/\.\*(?=[.[]|$)/g, '[*]')}`
  if (name.includes('*')) return 'can have * only as [*], which is any item of a list'
  if (/^-\d+$/.test(name)) return 'cannot count from the end of a list: [0] is the first item'
  if (name.includes('|')) return `cannot have | in it: ${quoteHint}`
  if (name === '$' && isBeforeOthers) return `needs no $: write ${text.slice(1).replace(/^\./, '')}`
  return undefined
}

const invalid = (text: string, fault: string) =>
  new DoorwardError('config-invalid', `path "${text}" ${fault}`)

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
  plainName.exec(name)?.[0] === name && !/^-\d+$|[*|\s]|^\$$/.test(name)

/** The text of a path below a root: `event.a`, `event["a.b"]`, or `event` for the empty path. */
export const formatBelow = (root: string, path: Path): string => formatPath([root, ...path])

/** True for `event.a.b`, the form in a prompt, where `event` is the payload. */
export const startsWithEvent = (path: Path): boolean => path.length > 1 && path[0] === 'event'
