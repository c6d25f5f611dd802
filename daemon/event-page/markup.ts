import { escapeHtml } from '../http/page.ts'

/** Text that is HTML already. Only `markup` makes it. */
export type Markup = { readonly html: string }

type Part = Markup | readonly Markup[] | string | number | undefined

/** A template of HTML: whatever is put into it is escaped, unless `markup` has made it. */
export const markup = (texts: TemplateStringsArray, ...parts: readonly Part[]): Markup => ({
  html: texts.map((text, place) => `${text}${htmlOf(parts[place])}`).join(''),
})

const htmlOf = (part: Part): string => {
  if (part === undefined) return ''
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return 'html' in part ? part.html : part.map(({ html }) => html).join('')
}
