import type { Account } from '../../../shared/api.ts'
import type { Page } from './callback-page.ts'
import type { Outcome } from './pending.ts'

/** The words of the page a login ends with. `command` is what starts it again. */
export const resultPage = (title: string, command: string, outcome: Outcome): Page => {
  if (outcome.status === 'authorized')
    return {
      kind: 'done',
      title: `Logged in to ${title}`,
      account: outcome.account?.name,
      message: `${replacesWhom(outcome)}Your tokens are kept on this machine.`,
      advice: 'You can close this window.',
    }
  const { message, hint, code } = outcome.error
  const isDenied = code === 'login-denied'
  return {
    kind: 'failed',
    title: isDenied ? 'You did not allow access' : `Not logged in to ${title}`,
    message: isDenied
      ? `${title} says that access was refused. Nothing has been kept.`
      : `${sentence(message)}${hint && hint !== command ? ` ${sentence(hint)}` : ''}`,
    advice: 'You can close this window. To try again:',
    command,
  }
}

const replacesWhom = ({ replaced }: { readonly replaced?: Account }): string =>
  replaced ? `This replaces the login of ${replaced.name}. ` : ''

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
