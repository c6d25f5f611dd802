import type { PageRequest } from '../view.ts'

/* What a person has chosen on the first page is in its address, so that every step can be left and come back to. */

export const startPath = '/ui/start'

const names = [
  'agent',
  'bot',
  'making',
  'recipe',
  'repo',
  'folder',
  'from',
  'path',
  'rule',
  'since',
] as const
type Name = (typeof names)[number]
export type Choices = { readonly [K in Name]?: string }

const maxLength = 300

/** Of the address, or of the hidden fields of a form. */
export const readChoices = (params: URLSearchParams): Choices =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = params.get(name)?.trim() ?? ''
      return value === '' || value.length > maxLength ? [] : [[name, value]]
    }),
  )

/** The address with these choices; undefined takes one back. */
export const toStart = (
  choices: Choices,
  changed: { readonly [K in Name]?: string | undefined } = {},
): string => {
  const all = Object.entries({ ...choices, ...changed })
  const given = all.flatMap(([name, value]): [string, string][] =>
    value === undefined ? [] : [[name, value]],
  )
  const query = new URLSearchParams(given).toString()
  return query === '' ? startPath : `${startPath}?${query}`
}

/** The choices as hidden fields of a form; `back` leads to them where its action fails. */
export const toFields = (choices: Choices): Readonly<Record<string, string>> => ({
  ...choices,
  back: toStart(choices).slice(startPath.length),
})

export const choicesOf = ({ query }: PageRequest): Choices => readChoices(query)
