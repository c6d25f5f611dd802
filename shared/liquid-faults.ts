import type { TagToken, Token } from 'liquidjs'
import { DoorwardError } from './errors.ts'
import { didYouMean } from './text.ts'

/*
 * Faults of a Liquid template, with their line and the way out.
 */

/** Limits of one rendering, during which the daemon does nothing else. */
export const maxMilliseconds = 250
/** Characters and list items that filters and outputs copy. */
export const maxUnits = 5_000_000

/** The tags that a template may have. */
export const tags = [
  'assign',
  'break',
  'capture',
  'case',
  'comment',
  'continue',
  'for',
  'if',
  'raw',
  'unless',
  '#',
]

const withoutQuotes = (text: string): string => text.replaceAll(/"[^"]*"|'[^']*'/g, '""')

/** `[*]` of a placeholder without filters, which Liquid reads as nothing. */
export const checkAnyItem = (text: string): void => {
  const [whole, list = '', name] = /([\w.-]+)\[\*\](?:\.([\w-]+))?/.exec(withoutQuotes(text)) ?? []
  if (whole === undefined) return
  const map = name === undefined ? '' : ` | map: "${name}"`
  throw new Error(`beside tags and filters, write ${list}${map} | join: ", " for ${whole}`)
}

export const checkTag = ({ name, args }: TagToken): void => {
  if (/^(end|els|when$)/.test(name)) throw new Error(`{% ${name} %} has no tag that it belongs to`)
  if (!tags.includes(name))
    throw new Error(
      `there is no tag {% ${name} %}: ${didYouMean(name, tags) ?? `use ${tags.join(', ')}`}`,
    )
  checkAnyItem(args)
  if (name === 'for' && withoutQuotes(args).includes('|'))
    throw new Error('a filter in {% for %} does nothing: put it into {% assign list = … %} first')
}

/** An error of the parser as `config-invalid`; `token` is what it was reading. */
export const toParseError = (
  error: unknown,
  filters: readonly string[],
  token?: Token,
): unknown => {
  if (!(error instanceof Error) || error instanceof DoorwardError) return error
  const { token: at = token, originalError: cause = error } = error as LibraryError
  // A fault inside a tag arrives wrapped for the tag.
  if (cause instanceof DoorwardError) return cause
  const [line = 1] = at?.getPosition() ?? []
  const reason = cause.message.replace(/, line:\d+, col:\d+$/, '')
  const [, filter] = /^undefined filter: (.*)$/s.exec(reason) ?? []
  if (filter !== undefined)
    return toError(line, `there is no filter ${filter}`, didYouMean(filter, filters))
  const text = token?.getText() ?? ''
  const shown = reason.includes(text) ? reason : `${shorten(text)}: ${reason}`
  return toError(line, shown, text.startsWith('{%') ? conditionHint : outputHint(text))
}

/** An error of liquidjs says where it is, and wraps others. */
type LibraryError = Error & { readonly token?: Token; readonly originalError?: Error }

/** `line` is that of the template. */
export const toError = (line: number, reason: string, hint?: string) =>
  new DoorwardError('config-invalid', `line ${line} of the template: ${reason}`, { hint })

const shorten = (text: string): string => (text.length <= 80 ? text : `${text.slice(0, 79)}…`)

const outputHint = (text: string): string =>
  /^\{\{-?\s*(event|headers)\b/.test(text)
    ? 'a name with dots, spaces or slashes is written event["…"], and a filter | truncate: 80'
    : 'for braces that stay as they are write {% raw %}{{ … }}{% endraw %}'

const conditionHint =
  'a condition has ==, !=, >, <, >=, <=, contains, and, or: {% if event.action == "opened" %}'

/** The message of the library may quote a value, so it is not shown. */
export const toRenderError = (error: unknown): DoorwardError => {
  const { message = '', token } = (error ?? {}) as Partial<LibraryError>
  const [line] = token?.getPosition() ?? []
  const where = line === undefined ? '' : ` in its line ${line}`
  const why = message.startsWith('template render limit')
    ? `it takes longer than ${maxMilliseconds} ms`
    : message.startsWith('memory alloc limit')
      ? `it copies more than ${maxUnits / 1_000_000} million characters or items`
      : 'a tag or filter cannot use a value of this event'
  return new DoorwardError('template-failed', 'a template cannot be filled from this event', {
    localDetail: `the template cannot be filled${where}: ${why}`,
    cause: error,
  })
}
