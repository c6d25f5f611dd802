import { readFileSync } from 'node:fs'
import { findNearest } from '../text.ts'
import { packageFolder } from '../version.ts'

/*
 * The events of senders, as `on` names them, to find misspelt ones. Senders add events, so one that is
 * missing here is only warned about.
 */

const withActions = ([event, actions]: [string, string]): string[] =>
  actions === '' ? [event] : actions.split(' ').map((action) => `${event}.${action}`)

type Events = string | Readonly<Record<string, string>>

/** By signature scheme the events of the sender's documents; those of GitHub each with their actions. */
const senderEvents: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.entries(
    JSON.parse(
      readFileSync(new URL('assets/sender-events.json', packageFolder), 'utf8'),
    ) as Readonly<Record<string, Events>>,
  ).map(([scheme, events]) => [
    scheme,
    typeof events === 'string' ? events.split(' ') : Object.entries(events).flatMap(withActions),
  ]),
)

/** A name that a sender does not send, and the known one that is meant. */
type UnknownEvent = { readonly meant: string | undefined }

/** Looks a name of `on` up. An unknown action of a known event is taken as new, unless it resembles another. */
export const findUnknownEvent = (scheme: string, name: string): UnknownEvent | undefined => {
  const known = senderEvents[scheme]
  const written = name.replace(/\.\*$/, '')
  if (!known || known.some((one) => one === written || one.startsWith(`${written}.`)))
    return undefined
  const [event = ''] = written.split('.')
  const isKnown = known.some((one) => one === event || one.startsWith(`${event}.`))
  if (isKnown) {
    const meant = findNearest(written, known, 2)
    return meant === undefined ? undefined : { meant }
  }
  const nearest = findNearest(event, [...new Set(known.map(toEvent))])
  return { meant: nearest && nearest + written.slice(event.length) }
}

const toEvent = (name: string): string => name.split('.')[0] ?? name
