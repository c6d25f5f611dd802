import type { Account } from '../../../shared/api/api.ts'
import { escapeHtml, loadPage, type RenderedPage } from '../../http/body.ts'
import { LoginError, toLoginCommand } from '../providers/errors.ts'
import type { Outcome } from './pending-logins.ts'

/** The content of the page in the browser, as plain text. */
export type Page = {
  readonly kind: 'done' | 'failed' | 'ignored'
  readonly title: string
  /** Who has logged in, if known. */
  readonly account?: string
  readonly message: string
  /** A note about missing permissions, and the permissions. */
  readonly note?: string
  readonly missing?: readonly string[]
  /** A page at the provider that comes next; https, or a stand-in on loopback. */
  readonly link?: { readonly url: string; readonly label: string }
  /** The next step. */
  readonly advice: string
  readonly command?: string
}

/** Returns a function that renders the page of `assets/callback` with every value escaped. */
export const loadCallbackPage = (): ((page: Page) => RenderedPage) => {
  const fill = loadPage('callback')
  return (page) =>
    fill({
      kind: page.kind,
      title: escapeHtml(page.title),
      account: escapeHtml(page.account ?? ''),
      message: escapeHtml(page.message),
      note: escapeHtml(page.note ?? ''),
      // The style sheet keeps the line breaks.
      missing: escapeHtml((page.missing ?? []).join('\n')),
      link: linkHtml(page.link),
      advice: escapeHtml(page.advice),
      command: commandHtml(page.command ?? ''),
    })
}

const linkHtml = (link: Page['link']): string =>
  link ? `<a class="next" href="${escapeHtml(link.url)}">${escapeHtml(link.label)}</a>` : ''

/** Keeps each option in one piece: a line may break after a hyphen. */
const commandHtml = (command: string): string =>
  command
    .split(' ')
    .map((word) => (word.startsWith('--') ? `<span>${escapeHtml(word)}</span>` : escapeHtml(word)))
    .join(' ')

/**
 * The page that a login ends with. `command` starts it again; with these scopes it requests again all that
 * this login requested.
 */
export const resultPage = (
  title: string,
  command: string,
  outcome: Outcome,
  scopes: readonly string[] = [],
): Page => {
  if (outcome.status === 'authorized')
    return {
      kind: 'done',
      title: `Logged in to ${title}`,
      account: outcome.account?.name,
      message: `${describeReplaced(outcome)}${describeSame(outcome)}Your tokens are kept on this machine.`,
      ...toAdvice(command, outcome.missingScopes ?? [], scopes),
    }
  const { error } = outcome
  const { message, code } = error
  const isDenied = code === 'login-denied'
  const next = error instanceof LoginError ? error.next : undefined
  const first = next ? next.first : error.hint
  return {
    kind: 'failed',
    title: isDenied ? 'You did not allow access' : `Not logged in to ${title}`,
    message: isDenied
      ? `${title} says that access was refused. Nothing of this login was stored.`
      : [message, ...(first === undefined ? [] : [first])].map(sentence).join(' '),
    advice: `You can close this window. ${next?.first === undefined ? 'To try again:' : 'Then:'}`,
    command: next ? toLoginCommand(next.provider, next.options) : command,
  }
}

const describeReplaced = ({ replaced }: { readonly replaced?: Account }): string =>
  replaced ? `This replaces the login of ${replaced.name}. ` : ''

const describeSame = ({ sameAccountAs }: { readonly sameAccountAs?: string }): string =>
  sameAccountAs === undefined ? '' : `${sameAccountAs} is a login of the same account. `

/** A login with fewer scopes than requested still counts; the command requests all of them again. */
const toAdvice = (
  command: string,
  missing: readonly string[],
  scopes: readonly string[],
): Pick<Page, 'note' | 'missing' | 'advice' | 'command'> =>
  missing.length === 0
    ? { advice: 'You can close this window.' }
    : {
        note:
          missing.length === 1
            ? 'One permission was not granted:'
            : 'Not all permissions were granted. Missing:',
        missing,
        advice: 'You can close this window. To ask again:',
        command: `${command} --scopes ${quoteForShell(scopes.join(','))}`,
      }

/** A scope may contain almost any character, and the command is meant to be copied. */
const quoteForShell = (text: string): string =>
  /^[\w:/.,@+-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** No full stop after a URL: it would be copied with it. */
const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/https?:\S+$/.test(text) ? '' : '.'}`
