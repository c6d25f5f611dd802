import { createHash } from 'node:crypto'
import { readAsset, readStyle } from '../read-asset.ts'

export type RenderedPage = { readonly html: string; readonly contentSecurityPolicy: string }

/**
 * Returns what fills in the page of `assets/<name>`, in one pass, with values that are HTML already. No script
 * may run, only this one style applies, and forms go to `formAction`.
 */
export const loadPage = (
  name: 'callback' | 'event',
  formAction: `'none'` | `'self'`,
): ((values: Readonly<Record<string, string>>) => RenderedPage) => {
  const template = readAsset(`${name}/page.html`)
  const style = readStyle(name)
  const styleHash = createHash('sha256').update(style).digest('base64')
  const contentSecurityPolicy = [
    `default-src 'none'`,
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    `base-uri 'none'`,
    `form-action ${formAction}`,
    `frame-ancestors 'none'`,
  ].join('; ')
  const styled = template.replace('{{style}}', () => `<style>${style}</style>`)
  return (values) => ({
    html: styled.replaceAll(/\{\{(\w+)\}\}/g, (_, value: string) => values[value] ?? ''),
    contentSecurityPolicy,
  })
}

/** Makes text safe inside HTML and its quoted attributes. */
export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`)
