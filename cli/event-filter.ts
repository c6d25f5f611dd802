import type { EventRecord, EventState } from '../shared/api.ts'
import { DoorwardError } from '../shared/errors.ts'
import { nearest } from '../shared/text.ts'
import { eventStates } from './event-line.ts'

/** Which events are shown: of this webhook, in this state. */
export type EventFilter = {
  readonly webhook?: string | undefined
  readonly state?: EventState | undefined
}

export const isChosen = ({ webhook, state }: EventFilter, record: EventRecord): boolean =>
  (webhook === undefined || record.webhook === webhook) &&
  (state === undefined || record.state === state)

/** The state that was typed. Throws `usage` with the nearest one. */
export const stateOf = (typed: string): EventState => {
  const state = eventStates.find((known) => known === typed)
  if (state) return state
  throw new DoorwardError('usage', `there is no state "${typed}"`, {
    hint: nearest(typed, eventStates) ?? `one of ${eventStates.join(', ')}`,
  })
}
