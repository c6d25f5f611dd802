import type { EventDetail, EventRecord } from '../shared/api.ts'
import { labelOf, plainText } from './label.ts'
import { nameOfEvent, reasonOf } from './view.ts'

/** One desktop notification, still plain text. */
export type Note = {
  readonly title: string
  readonly body: string
  /** It tells of a failure and gets the icon of one. */
  readonly failure?: true
}

/**
 * The note for an event that has reached a final state, or undefined when it is not to be shown:
 * the answer if one of its targets is `notify:desktop` and got it, the reason if it failed.
 */
export const noteOf = (event: EventRecord): Note | undefined => {
  const name = nameOfEvent(event)
  const answered = event.targets.some(
    ({ target, state }) => target === 'notify:desktop' && state === 'done',
  )
  const answer = answered ? (event.resultPreview ?? '') : ''
  if (event.state === 'failed' || event.state === 'dropped')
    return {
      title: titleOf(`${name}: ${event.state}`),
      body: bodyOf([reasonOf(event), answer].filter(Boolean).join('\n')),
      failure: true,
    }
  if (event.state !== 'done' || !answered) return undefined
  return { title: titleOf(name), body: bodyOf(answer) }
}

/** The note for an event that was clicked: its result while there is one, else how it stands. */
export const resultNoteOf = (event: EventDetail): Note => {
  const result = event.result ?? event.resultPreview
  const failed = ['failed', 'dropped', 'rejected'].includes(event.state)
  return {
    title: titleOf(`${nameOfEvent(event)}: ${event.state}`),
    body: bodyOf([failed ? reasonOf(event) : '', result ?? ''].filter(Boolean).join('\n')),
    ...(failed ? { failure: true } : {}),
  }
}

/** A title of one line. It begins with our name, so it can never be taken for an option. */
export const titleOf = (text: string): string => labelOf(`Doorward · ${text}`)

const maxLines = 6
const maxCharacters = 400

/** The first lines of a text, without empty ones. */
export const bodyOf = (text: string): string => {
  const lines = plainText(text)
    .split('\n')
    .map((line) =>
      line
        .replaceAll(/\s+/gu, ' ')
        .trim()
        .replace(/^[-*] /, '• '),
    )
    .filter((line) => line !== '')
  const kept = Array.from(lines.slice(0, maxLines).join('\n'))
  const cut = lines.length > maxLines || kept.length > maxCharacters
  return `${kept.slice(0, maxCharacters).join('')}${cut ? ' …' : ''}` || '(no text)'
}

/**
 * The key under which an event is shown once: a retry that ends is news, the same record sent again
 * after a reconnect is not.
 */
export const keyOf = (event: EventRecord): string => `${event.id} ${event.attempts} ${event.state}`
