import { DoorwardError, nameOf } from '../shared/errors.ts'
import type { Action } from './action.ts'
import { type Note, bodyOf, daemonKey, loginKey, titleOf } from './note.ts'
import { providerTitle, upperFirst } from './wording.ts'

/** What to show when a click could not be done: what, why, and what mends it. */
export const failureNoteOf = (action: Action, error: unknown): Note => ({
  title: titleOf(titleFor(action)),
  body: bodyOf(
    error instanceof DoorwardError
      ? [upperFirst(error.message), error.hint ?? ''].join('\n')
      : nameOf(error),
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
