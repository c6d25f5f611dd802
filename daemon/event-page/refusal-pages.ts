import type { Page } from '../oauth/login/callback-page.ts'
import type { NotAPerson } from './navigation.ts'

/** A page that says why an event is not shown, with its HTTP status. */
export type Refusal = { readonly status: number; readonly page: Page }

const advice = 'To see the event, click it in the tray. Or in a terminal:'
const command = 'doorward events'

/** For a link that was used, is too old, or never was one: nobody is told which. */
export const usedUp: Refusal = {
  status: 410,
  page: {
    kind: 'ignored',
    title: 'This link no longer works',
    message: 'A link to an event works once and for a minute, so that nobody else can follow it.',
    advice: 'Click the event in the tray again. Or in a terminal:',
    command,
  },
}

export const forgotten: Refusal = {
  status: 404,
  page: {
    kind: 'ignored',
    title: 'This event is no longer in memory',
    message: 'Only the newest events are kept, and only until the daemon ends.',
    advice: 'Those there are:',
    command,
  },
}

/** Another user of this machine has seen the link: it stays good for its owner. */
export const otherUser: Refusal = {
  status: 403,
  page: {
    kind: 'ignored',
    title: 'This event belongs to another user',
    message: 'Your browser does not run as the user whose daemon this is.',
    advice,
    command,
  },
}

const reasons: Readonly<Record<NotAPerson, string>> = {
  guess: 'Your browser loaded the link ahead, before anybody had opened it.',
  embedded: 'An event is shown in a window of its own, not as a part of another page.',
  'other-site': 'Another page led here. If that was you: copy the link into the address bar.',
}

/** For what no person has opened; the link stays good. */
export const notOpened = (why: NotAPerson): Refusal => ({
  status: 403,
  page: {
    kind: 'ignored',
    title: 'Open this link yourself',
    message: reasons[why],
    advice,
    command,
  },
})
