import { createHash } from 'node:crypto'
import { readAsset, readStyle } from '../../read-asset.ts'

/** What the page in the browser says. All of it is plain text. */
export type Page = {
  readonly kind: 'done' | 'failed' | 'ignored'
  readonly title: string
  /** Who has logged in, where that is known. */
  readonly account?: string
  readonly message: string
  /** What is to be known besides, and the permissions it speaks of. */
  readonly note?: string
  readonly missing?: readonly string[]
  /** What to do now. */
  readonly advice: string
  /** The command that does it. */
  readonly command?: string
}

export type RenderedPage = { readonly html: string; readonly contentSecurityPolicy: string }

/** Returns what fills in the page of `assets/callback`. */
export const loadCallbackPage = (): ((page: Page) => RenderedPage) => {
  const template = readAsset('callback/page.html')
  const style = readStyle('callback')
  return (page) => renderPage(template, style, page)
}

/** Fills the template in one pass, every value escaped; only this style may apply, and no script. */
export const renderPage = (template: string, style: string, page: Page): RenderedPage => {
  const values: Readonly<Record<string, string>> = {
    style: `<style>${style}</style>`,
    kind: page.kind,
    title: escapeHtml(page.title),
    account: escapeHtml(page.account ?? ''),
    message: escapeHtml(page.message),
    note: escapeHtml(page.note ?? ''),
    // One a line, which the style keeps.
    missing: escapeHtml((page.missing ?? []).join('\n')),
    advice: escapeHtml(page.advice),
    command: commandHtml(page.command ?? ''),
  }
  const styleHash = createHash('sha256').update(style).digest('base64')
  return {
    html: template.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => values[name] ?? ''),
    contentSecurityPolicy: [
      `default-src 'none'`,
      `style-src 'sha256-${styleHash}'`,
      'img-src data:',
      `base-uri 'none'`,
      `form-action 'none'`,
      `frame-ancestors 'none'`,
    ].join('; '),
  }
}

/** Options in one piece: a line would break behind their hyphens. */
const commandHtml = (command: string): string =>
  command
    .split(' ')
    .map((word) => (word.startsWith('--') ? `<span>${escapeHtml(word)}</span>` : escapeHtml(word)))
    .join(' ')

/** Makes text safe inside HTML and its quoted attributes. */
export const escapeHtml = (text: string): string =>
  text.replaceAll(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`)
