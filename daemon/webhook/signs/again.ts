import type { EventRecord } from '../../../shared/api/api.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { isFinal } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import { valueAt } from '../../util/payload-path.ts'
import type { SeenDeliveries } from '../dedupe.ts'
import type { Engine } from '../engine.ts'
import type { ReadDelivery } from '../read-delivery.ts'
import { toWhoRequest } from '../rules/who.ts'

/*
 * The button of a check that runs its event again, and GitHub's own: only for those who may start the rule.
 */

export type Pressed = {
  /** The event of the check. */
  readonly eventId: string
  /** The event of the delivery that tells of the press. */
  readonly id: string
  readonly read: ReadDelivery
}

export type RunPressed = (pressed: Pressed) => void

type Parts = {
  readonly current: () => Engine
  readonly events: EventStore
  readonly deliveries: SeenDeliveries
  readonly runAgain: (id: string) => EventRecord
}

export const createRunPressed = ({ current, events, deliveries, runAgain }: Parts): RunPressed => {
  const run = async ({ eventId, id, read }: Pressed): Promise<void> => {
    const { signs, requireRole } = current()
    const { webhook, payload } = read
    const before = events.record(eventId)
    const rule = webhook.rules.find(({ name }) => name === before?.rule)
    const who = toWhoRequest(rule ?? { workspace: undefined }, read)
    try {
      if (who) await requireRole(who)
      runAgain(eventId)
    } catch (thrown) {
      const error =
        thrown instanceof DoorwardError ? thrown : new DoorwardError('internal', errorName(thrown))
      events.update(id, { code: error.code, detail: `not run again: ${error.message}` })
      const number = valueAt(payload, ['check_run', 'id'])
      const repository = valueAt(payload, ['repository', 'full_name'])
      const isGone = error.code !== 'not-allowed' && (!before || isFinal(before.state))
      const app = webhook.source?.app
      if (!isGone || app === undefined) return
      if (typeof number !== 'number' || typeof repository !== 'string') return
      const check = { repository, number, bot: `github@${app}` }
      await signs.say(eventId, check, 'It cannot run again: what started it is no longer kept.')
    }
  }
  return (pressed) => {
    const { key } = pressed.read
    if (key) {
      deliveries.remember(key, pressed.id, performance.now())
      deliveries.settle(key, pressed.id)
    }
    void run(pressed)
  }
}
