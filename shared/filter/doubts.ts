import type { Path } from '../paths.ts'
import type { Operator } from './tests.ts'

/*
 * Words of filters that people write by habit, and that are valid but match nothing: each with the right form.
 */

export type Doubt = { readonly code: string; readonly what: string; readonly hint: string }

/** Doubts about a path; `filter-path-prefix` needs the prompt, and is found in `warnings.ts`. */
export const findPathDoubts = (text: string, [root, first, ...rest]: Path): Doubt[] =>
  root === 'event' && rest.length === 0 && /^x-[\w-]+$/i.test(String(first))
    ? [
        {
          code: 'filter-path-header',
          what: `${text} in filter is a field of the payload, not a header`,
          hint: `write headers.${text.toLowerCase()}`,
        },
      ]
    : []

const maxLength = 200

type Written = {
  readonly text: string
  readonly operator: Operator
  /** True for a value without an operator. */
  readonly isPlain: boolean
  /** The source of a value without quotes. */
  readonly written: string | undefined
}

/** Doubts about a value that is compared as it stands. */
export const findValueDoubts = (
  value: string | number | boolean,
  { text, operator, isPlain, written }: Written,
): Doubt[] => {
  if (typeof value !== 'string') return []
  const isCompared = ['is', 'not', 'in', 'not_in'].includes(operator)
  if (isCompared && written !== undefined && /^(yes|no|on|off)$/i.test(written)) {
    const meant = /^(yes|on)$/i.test(written)
    return [
      {
        code: 'filter-value-boolean',
        what: `${text} in filter expects the text ${written}, which YAML does not read as ${meant}`,
        hint: `write ${meant}, or '${written}' in quotes if it is text`,
      },
    ]
  }
  if (operator === 'regex' && /^\/(\^.*|.*\$)\/[a-z]*$|^\/.+\/[gimsuy]+$/s.test(value))
    return [
      literal(`the regex of ${text}`, value, `write it without the slashes: ${toRegex(value)}`),
    ]
  // `is` means the text itself.
  if (!isPlain || value.length > maxLength) return []
  const meant = toMeant(value)
  if (meant === undefined) return []
  return [literal(text, value, `write ${meant}, or { is: ${quote(value)} } if that is the text`)]
}

const literal = (where: string, value: string, hint: string): Doubt => ({
  code: 'filter-value-literal',
  what: `${where} in filter is compared with the text ${JSON.stringify(value)} as it stands`,
  hint,
})

/** The right form of what looks like a pattern, a negation, a comparison or a list. */
const toMeant = (value: string): string | undefined => {
  const [, comparison, number] = /^([<>])=?\s*(-?\d+(?:\.\d+)?)$/.exec(value) ?? []
  if (comparison !== undefined && number !== undefined)
    return `{ ${comparison === '>' ? 'above' : 'below'}: ${number} }`
  const [, negated] = /^!=?\s*(\S.*)$/s.exec(value) ?? []
  if (negated !== undefined) return `{ not: ${quote(negated)} }`
  if (/^\/(?:[^/\\]|\\.)+\/[gimsuy]{0,3}$/s.test(value)) return `{ regex: ${toRegex(value)} }`
  if (/^\^.|.\$$|\.\*/s.test(value)) return `{ regex: ${quote(value)} }`
  if (value === '*') return '{ exists: true }'
  if (value.includes('*')) return `{ glob: ${quote(value)} }`
  if (/^[\w.-]+(\s*\|{1,2}\s*[\w.-]+)+$/.test(value) || /^[\w-]+(,\s*[\w-]+)+$/.test(value))
    return `[${value.split(/\s*[|,]+\s*/).join(', ')}]`
  if (value === 'null') return '{ exists: false }'
  return undefined
}

/** `'(?i)^fix'` of `/^fix/i`. */
const toRegex = (value: string): string => {
  const end = value.lastIndexOf('/')
  const flags = value.slice(end + 1).replaceAll(/[^ims]/g, '')
  const source = value.slice(1, end).replaceAll(String.raw`\/`, '/')
  return quote(`${flags === '' ? '' : `(?${flags})`}${source}`)
}

const quote = (text: string): string => `'${text.replaceAll("'", "''")}'`
