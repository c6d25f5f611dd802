import type { Account } from '../../../shared/api.ts'
import { escapeHtml, loadPage, type RenderedPage } from '../../http/body.ts'
import type { Outcome } from './pending-logins.ts'

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

/**
 * The words of the page a login ends with. `command` is what starts it again, and with these scopes what
 * asks again for all that this one asked for.
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
      message: `${replacesWhom(outcome)}Your tokens are kept on this machine.`,
      ...closingWords(command, outcome.missingScopes ?? [], scopes),
    }
  const { message, hint, code } = outcome.error
  const isDenied = code === 'login-denied'
  const { first, next } = toSteps(hint ?? '')
  return {
    kind: 'failed',
    title: isDenied ? 'You did not allow access' : `Not logged in to ${title}`,
    message: isDenied
      ? `${title} says that access was refused. Nothing of this login has been kept.`
      : [message, first]
          .filter((text) => text !== '')
          .map(sentence)
          .join(' '),
    advice: `You can close this window. ${next && next !== command ? 'Then:' : 'To try again:'}`,
    command: next ?? command,
  }
}

const replacesWhom = ({ replaced }: { readonly replaced?: Account }): string =>
  replaced ? `This replaces the login of ${replaced.name}. ` : ''

/** A hint is a command, words, or words that end with one. */
const toSteps = (hint: string): { readonly first: string; readonly next?: string } => {
  if (hint.startsWith('doorward ')) return { first: '', next: hint }
  const [, first, next] = /^(.*), then: (doorward .*)$/.exec(hint) ?? []
  return first === undefined || next === undefined ? { first: hint } : { first, next }
}

/** A login that got less than it asked for is one all the same; what is missing is asked for with all. */
const closingWords = (
  command: string,
  missing: readonly string[],
  scopes: readonly string[],
): Pick<Page, 'note' | 'missing' | 'advice' | 'command'> =>
  missing.length === 0
    ? { advice: 'You can close this window.' }
    : {
        note:
          missing.length === 1 ? 'One permission was not given:' : 'Not all was given. Missing:',
        missing,
        advice: 'You can close this window. To ask again:',
        command: `${command} --scopes ${forShell(scopes.join(','))}`,
      }

/** A scope may hold almost any character; the command is made to be copied. */
const forShell = (text: string): string =>
  /^[\w:/.,@+-]*$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** No full stop after an address, which would be copied with it. */
const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/https?:\S+$/.test(text) ? '' : '.'}`
