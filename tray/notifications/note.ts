import type { EventDetail, EventRecord } from '../../shared/api.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import type { Action } from '../action.ts'
import { toLabel, plainText } from '../text.ts'
import { getEventName, providerTitle, describeReason, upperFirst } from '../wording.ts'

/** One desktop notification, still plain text. */
export type Note = {
  readonly title: string
  readonly body: string
  /** It tells of a failure and gets the icon of one. */
  readonly failure?: true
  /** It tells how a run ended. */
  readonly isRun?: true
  /** A later note with the same key takes the place of this one. */
  readonly key?: string
  /** Where the desktop has them; a click on the note itself presses the first. */
  readonly buttons?: readonly NoteButton[]
}

export type NoteButton = { readonly label: string; readonly action: Action }

/**
 * The note for an event that has reached a final state, or undefined when it is not to be shown: the
 * answer if it is done, the reason if it failed. With notifications off only of events that have
 * `notify:desktop` among their targets, and the answer only if that target got it.
 */
export const toNote = (event: EventRecord, isOn: boolean): Note | undefined => {
  if (event.kind !== 'webhook') return undefined
  const onDesktop = event.targets.find(({ target }) => target === 'notify:desktop')
  const isAnswered = onDesktop ? onDesktop.state === 'done' : isOn
  const answer = isAnswered ? (event.resultPreview ?? '') : ''
  const name = getEventName(event)
  const key = `event ${event.id}`
  if (event.state === 'failed' || event.state === 'dropped') {
    if (!isOn && !onDesktop) return undefined
    return {
      title: toTitle(`${name}: ${event.state}`),
      body: toBody([describeReason(event), answer].filter(Boolean).join('\n')),
      failure: true,
      isRun: true,
      key,
      buttons: [open(event), ...retry(event)],
    }
  }
  if (event.state !== 'done' || !isAnswered) return undefined
  return { title: toTitle(name), body: toBody(answer), isRun: true, key, buttons: [open(event)] }
}

/** The note for an event that was clicked: its result while there is one, else how it stands. */
export const toResultNote = (event: EventDetail): Note => {
  const result = event.result ?? event.resultPreview
  const failed = ['failed', 'dropped', 'rejected'].includes(event.state)
  return {
    title: toTitle(`${getEventName(event)}: ${event.state}`),
    body: toBody([failed ? describeReason(event) : '', result ?? ''].filter(Boolean).join('\n')),
    ...(failed ? { failure: true } : {}),
    key: `event ${event.id}`,
    buttons: [open(event), ...retry(event)],
  }
}

const open = ({ id }: EventRecord): NoteButton => ({
  label: 'Open',
  action: { do: 'show-event', id },
})

/** For what failed after it was accepted: the rest was not kept. A daemon that stops runs nothing again. */
const retry = ({ id, state, stage }: EventRecord): NoteButton[] =>
  state === 'failed' && (stage === 'agent' || stage === 'deliver')
    ? [{ label: 'Retry', action: { do: 'retry-event', id } }]
    : []

/** A note about the login to a provider takes the place of the one before. */
export const loginKey = (provider: string): string => `login ${provider}`

/** So does one about the daemon that ended or did not start. */
export const daemonKey = 'daemon'

/** A title of one line. It begins with our name, so it can never be taken for an option. */
export const toTitle = (text: string): string => toLabel(`Doorward · ${text}`)

const maxLines = 6
const maxCharacters = 400

/** The first lines of a text, without empty ones. */
export const toBody = (text: string): string => {
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
export const toKey = (event: EventRecord): string => `${event.id} ${event.attempts} ${event.state}`

/** What to show when a click could not be done: what, why, and what mends it. */
export const toFailureNote = (action: Action, error: unknown): Note => ({
  title: toTitle(titleFor(action)),
  body: toBody(
    error instanceof DoorwardError
      ? [upperFirst(error.message), error.hint ?? ''].join('\n')
      : errorName(error),
  ),
  failure: true,
  ...keyFor(action),
})

/** It takes the place of what was said of the same thing before. */
const keyFor = (action: Action): Pick<Note, 'key'> => {
  if (action.do === 'login' || action.do === 'logout') return { key: loginKey(action.provider) }
  if (action.do === 'start-daemon' || action.do === 'restart-daemon') return { key: daemonKey }
  return {}
}

const titleFor = (action: Action): string => {
  switch (action.do) {
    case 'login':
      return `not logged in to ${providerTitle(action.provider)}`
    case 'logout':
      return `not logged out of ${providerTitle(action.provider)}`
    case 'show-event':
      return 'the event cannot be shown'
    case 'retry-event':
      return 'not tried again'
    case 'set-notifications':
      return 'the choice was not kept'
    case 'set-start-at-login':
      return `start at login was not turned ${action.on ? 'on' : 'off'}`
    case 'copy-diagnostics':
      return 'no diagnostics'
    case 'restart-daemon':
      return 'the daemon was not restarted'
    case 'start-daemon':
      return 'the daemon was not started'
    case 'stop-and-quit':
      return 'the daemon was not stopped'
    case 'open-configuration':
    case 'open-logs':
    case 'open-guide':
    case 'explain':
    case 'quit':
      return 'that did not work'
  }
}
