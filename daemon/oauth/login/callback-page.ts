import { type RenderedPage, escapeHtml, loadPage } from '../../http/page.ts'

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

/** Returns what fills in the page of `assets/callback`, every value escaped. */
export const loadCallbackPage = (): ((page: Page) => RenderedPage) => {
  const fill = loadPage('callback', `'none'`)
  return (page) =>
    fill({
      kind: page.kind,
      title: escapeHtml(page.title),
      account: escapeHtml(page.account ?? ''),
      message: escapeHtml(page.message),
      note: escapeHtml(page.note ?? ''),
      // One a line, which the style keeps.
      missing: escapeHtml((page.missing ?? []).join('\n')),
      advice: escapeHtml(page.advice),
      command: commandHtml(page.command ?? ''),
    })
}

/** Options in one piece: a line would break behind their hyphens. */
const commandHtml = (command: string): string =>
  command
    .split(' ')
    .map((word) => (word.startsWith('--') ? `<span>${escapeHtml(word)}</span>` : escapeHtml(word)))
    .join(' ')
