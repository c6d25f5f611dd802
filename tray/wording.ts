import type { EventRecord } from '../shared/api.ts'
import { labelOf } from './label.ts'
import { brokenFile, inHome } from './mend.ts'
import type { View } from './view.ts'

/*
 * How things are called wherever the tray speaks of them, in the menu and in notifications.
 */

/** What to call an event: the path of its webhook. */
export const nameOfEvent = ({ webhook, kind }: EventRecord): string => webhook ?? kind

/** Why an event failed, in one line. */
export const reasonOf = ({ detail, code, stage, state }: EventRecord): string =>
  labelOf(detail ?? code ?? (stage ? `failed at ${stage}` : state), 200)

/** `12:04` today, `11-20` on another day, in the local time of the view. */
export const timeOf = (iso: string, { now, utcOffset }: View): string => {
  const local = (time: number) => new Date(time + utcOffset * 60_000).toISOString()
  const then = local(Date.parse(iso))
  return then.slice(0, 10) === local(now).slice(0, 10) ? then.slice(11, 16) : then.slice(5, 10)
}

export const upperFirst = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** A provider as people write it. */
export const providerTitle = (provider: string): string =>
  ({ github: 'GitHub', gitlab: 'GitLab' })[provider] ?? upperFirst(provider)

/** A line of the daemon as a sentence. One that begins with the place of a file is a name, and stays. */
export const sentenceOf = (line: string): string =>
  brokenFile(line) === undefined ? upperFirst(line) : inHome(line)
