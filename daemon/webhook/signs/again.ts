import type { EventRecord } from '../../../shared/api/api.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { isFinal } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import { textAt, valueAt } from '../../util/payload-path.ts'
import type { SeenDeliveries } from '../dedupe.ts'
import type { Engine } from '../engine.ts'
import type { ReadDelivery } from '../read-delivery.ts'
import type { Approvals } from '../approvals/approvals.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import { toWhoRequest, type WhoRequest } from '../rules/who.ts'

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
  readonly approvals: Pick<Approvals, 'approve' | 'reject'>
}

/** Who may answer at a check has the role of `approve.who.github`: without one, no one may. */
const toAnswererRequest = (
  rule: CompiledRule | undefined,
  read: ReadDelivery,
): WhoRequest | undefined => {
  const { github: who } = rule?.leaving?.approve?.who ?? {}
  if (!rule || who === undefined) return { refused: 'approve.who.github names no role' }
  return toWhoRequest({ who, workspace: rule.workspace }, read)
}

export const createRunPressed = ({
  current,
  events,
  deliveries,
  runAgain,
  approvals,
}: Parts): RunPressed => {
  const run = async ({ eventId, id, read }: Pressed): Promise<void> => {
    const { signs, requireRole } = current()
    const { webhook, payload } = read
    const before = events.record(eventId)
    const rule = webhook.rules.find(({ name }) => name === before?.rule)
    const identifier = textAt(payload, 'requested_action', 'identifier') ?? 'run-again'
    const [answer, digest = ''] = identifier.split(' ')
    const isAnswer = answer === 'send' || answer === 'decline'
    try {
      const who = isAnswer
        ? toAnswererRequest(rule, read)
        : toWhoRequest(rule ?? { workspace: undefined }, read)
      if (who) await requireRole(who)
      if (isAnswer && digest === '')
        throw new DoorwardError('request-invalid', 'the button names no answer')
      const by = { by: textAt(payload, 'sender', 'login') ?? 'someone', where: 'check' }
      if (answer === 'send') await approvals.approve(eventId, by, [], digest)
      else if (isAnswer) await approvals.reject(eventId, by, digest)
      else runAgain(eventId)
    } catch (thrown) {
      const error =
        thrown instanceof DoorwardError ? thrown : new DoorwardError('internal', errorName(thrown))
      const what = isAnswer ? 'the answer does not count' : 'not run again'
      events.update(id, { code: error.code, detail: `${what}: ${error.message}` })
      const number = valueAt(payload, ['check_run', 'id'])
      const repository = valueAt(payload, ['repository', 'full_name'])
      const isKnown = before !== undefined && (isAnswer || !isFinal(before.state))
      const isGone = error.code !== 'not-allowed' && !isKnown
      const app = webhook.source?.app
      if (!isGone || app === undefined) return
      if (typeof number !== 'number' || typeof repository !== 'string') return
      const check = { repository, number, bot: `github@${app}` }
      const why = isAnswer
        ? 'Nothing was sent: the question is no longer known.'
        : 'It cannot run again: what started it is no longer kept.'
      await signs.say(eventId, check, why)
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
