import type { EventDetail, EventRecord } from '../../shared/api/api.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import type { Action } from '../view.ts'
import { toLabel, plainText } from '../text.ts'
import { describeWhat } from '../../shared/event-stages.ts'
import { providerTitle, describeReason, toOpenAction, upperFirst } from '../wording.ts'

/** One desktop notification, still plain text. */
export type Note = {
  /** What it is about: its title without our name. */
  readonly subject: string
  readonly body: string
  /** Shown longer and with the icon of a failure. */
  readonly failure?: true
  /** Reports how a run ended. */
  readonly isRun?: true
  /** A later note with the same key replaces this one. */
  readonly key?: string
  /** Shown where the desktop has buttons; a click on the note itself presses the first. */
  readonly buttons?: readonly NoteButton[]
}

export type NoteButton = { readonly label: string; readonly action: Action }

/**
 * The note for an event in a final state, with the answer or the reason of the failure; undefined when
 * there is nothing to show. With notifications off, only for events with `notify:desktop` among their
 * targets, and with the answer only if that target got it.
 */
export const toNote = (event: EventRecord, isOn: boolean): Note | undefined => {
  // The owner cancelled it, and knows.
  if (event.kind !== 'webhook' || event.code === 'event-cancelled') return undefined
  const onDesktop = event.targets.find(({ target }) => target === 'notify:desktop')
  const isAnswered = onDesktop ? onDesktop.state === 'done' : isOn
  // A question is asked whatever the setting is: nothing is sent without an answer.
  if (event.state === 'waiting')
    return event.approval?.asked.includes('desktop') ? toQuestion(event) : undefined
  const answer = isAnswered ? (event.resultPreview ?? '') : ''
  const name = describeWhat(event)
  const key = `event ${event.id}`
  if (event.state === 'failed' || event.state === 'dropped') {
    if (!isOn && !onDesktop) return undefined
    return {
      subject: `${name}: ${event.state}`,
      body: toBody([describeReason(event), answer].filter(Boolean).join('\n')),
      failure: true,
      isRun: true,
      key,
      buttons: [...openButtons(event), ...retry(event)],
    }
  }
  if (event.state !== 'done' || !isAnswered) return undefined
  return { subject: name, body: toBody(answer), isRun: true, key, buttons: openButtons(event) }
}

/** Asks whether an answer may leave, with its first lines. */
const toQuestion = (event: EventRecord): Note => {
  const { id, targets, resultPreview = '' } = event
  const where = targets.map(({ target }) => target).join(', ')
  return {
    subject: `${describeWhat(event)}: send the answer?`,
    body: toBody([`To ${where}`, resultPreview].join('\n')),
    // It stays as long as a failure, as it asks for a decision.
    failure: true,
    key: `event ${id}`,
    buttons: [{ label: 'Look', action: { do: 'show-event', id } }, ...answerButtons(event)],
  }
}

const answerButtons = ({ id, state, approval }: EventRecord): NoteButton[] =>
  state === 'waiting'
    ? [
        { label: 'Send', action: { do: 'approve-event', id, digest: approval?.digest ?? '' } },
        {
          label: 'Do not send',
          action: { do: 'reject-event', id, digest: approval?.digest ?? '' },
        },
      ]
    : []

/** The note for an event that was clicked: its result, or else its state. */
export const toResultNote = (event: EventDetail): Note => {
  const result = event.result ?? event.resultPreview
  const failed = ['failed', 'dropped', 'rejected'].includes(event.state)
  return {
    subject: `${describeWhat(event)}: ${event.state}`,
    body: toBody([failed ? describeReason(event) : '', result ?? ''].filter(Boolean).join('\n')),
    ...(failed ? { failure: true } : {}),
    key: `event ${event.id}`,
    buttons: [...openButtons(event), ...answerButtons(event), ...retry(event), ...runAgain(event)],
  }
}

/** A click opens the same as a click in the menu; the page of the event has a button of its own. */
const openButtons = (event: EventRecord): NoteButton[] => {
  const action = toOpenAction(event)
  const open = { label: 'Open', action }
  if (action.do === 'show-event') return [open]
  return [open, { label: 'Details', action: { do: 'show-event', id: event.id } }]
}

/** Only for runs: other failed events have no stored payload. */
const retry = ({ id, state, stage }: EventRecord): NoteButton[] =>
  state === 'failed' && (stage === 'agent' || stage === 'deliver')
    ? [{ label: 'Retry', action: { do: 'retry-event', id } }]
    : []

/** Only after a click on the event: its own note comes once more then. */
const runAgain = ({ id, kind, state }: EventRecord): NoteButton[] =>
  kind === 'webhook' && state === 'done'
    ? [{ label: 'Run again', action: { do: 'run-event-again', id } }]
    : []

/** What can be done about deliveries that did not arrive. */
export const missedButtons = {
  run: { label: 'Run', action: { do: 'run-missed' } },
  show: { label: 'Show', action: { do: 'show-missed' } },
  skip: { label: 'Skip', action: { do: 'skip-missed' } },
} as const satisfies Readonly<Record<string, NoteButton>>

/** The key of all notes about the login to a provider. */
export const loginKey = (provider: string): string => `login ${provider}`

/** The key of notes about a daemon that crashed or did not start. */
export const daemonKey = 'daemon'

/** A title of one line. It begins with our name, so no program takes it for an option. */
export const toTitle = (text: string): string => toLabel(`Doorward · ${text}`)

const maxLines = 6
const maxCharacters = 400

/** The first lines of a text, without empty lines. */
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

/** Differs for each attempt of an event, but not for a record that is sent again after a reconnect. */
export const toKey = ({ id, attempts, state, approval }: EventRecord): string =>
  `${id} ${attempts} ${state} ${approval?.digest ?? ''}`

/** The note for an action that failed: what, why, and how to fix it. */
export const toFailureNote = (action: Action, error: unknown): Note => ({
  subject: subjectFor(action),
  body: toBody(
    error instanceof DoorwardError
      ? [upperFirst(error.message), error.hint ?? ''].join('\n')
      : errorName(error),
  ),
  failure: true,
  ...keyFor(action),
})

const keyFor = (action: Action): Pick<Note, 'key'> => {
  if (action.do === 'login' || action.do === 'logout') return { key: loginKey(action.provider) }
  if (action.do === 'start-daemon' || action.do === 'restart-daemon') return { key: daemonKey }
  return {}
}

const subjectFor = (action: Action): string => {
  switch (action.do) {
    case 'login':
      return `not logged in to ${providerTitle(action.provider)}`
    case 'logout':
      return `not logged out of ${providerTitle(action.provider)}`
    case 'show-event':
    case 'open-page':
      return 'the event cannot be shown'
    case 'open-doorward':
      return 'the page was not opened'
    case 'retry-event':
    case 'run-event-again':
      return 'the event was not retried'
    case 'run-schedule':
      return `schedule ${action.name} was not run`
    case 'approve-event':
    case 'reject-event':
      return 'your answer does not count'
    case 'run-missed':
    case 'skip-missed':
      return 'the missed deliveries were left as they are'
    case 'set-notifications':
      return 'the setting was not saved'
    case 'set-start-at-login':
      return `start at login was not turned ${action.on ? 'on' : 'off'}`
    case 'copy-diagnostics':
      return 'diagnostics were not copied'
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
    case 'show-missed':
    case 'quit':
      return 'that did not work'
  }
}
