import type { EventRecord, TargetResult } from '../../shared/api.ts'
import type { ReadyTarget } from '../deliver/ready-target.ts'

/** How an event begins that is to be delivered to these targets. */
export const waitingFor = (
  targets: readonly ReadyTarget[],
): Pick<EventRecord, 'target' | 'targets'> => ({
  target: targets.length > 0 ? targets.map(({ text }) => text).join(', ') : undefined,
  targets: targets.map(({ text }) => ({ target: text, state: 'waiting', attempts: 0 })),
})

/** The results before they are tried again: what is done stays done, and every attempt counts. */
export const waitingAgain = (results: readonly TargetResult[]): TargetResult[] =>
  results.map((result) => {
    const { target, state, attempts } = result
    return state === 'done' ? result : { target, state: 'waiting', attempts }
  })

/** Where in the list the targets stand that have not got the answer yet. */
export const openPlaces = (results: readonly TargetResult[]): number[] =>
  results.flatMap(({ state }, place) => (state === 'done' ? [] : [place]))

/** The results with a new one at a place, whose attempts come on top of the earlier ones. */
export const withResult = (
  results: readonly TargetResult[],
  earlier: readonly TargetResult[],
  place: number,
  result: TargetResult,
): TargetResult[] =>
  results.with(place, {
    ...result,
    attempts: (earlier[place]?.attempts ?? 0) + result.attempts,
  })

/** How an event ends with these results: `done`, or `failed` with the reason of the first that failed. */
export const deliveredEnd = (
  targets: TargetResult[],
): Pick<EventRecord, 'targets' | 'state' | 'stage' | 'code' | 'detail'> => {
  const failed = targets.find(({ state }) => state === 'failed')
  if (!failed) return { state: 'done', targets }
  const { target, code = 'delivery-failed', detail: reason = 'not delivered' } = failed
  const detail = reason.startsWith(target) ? reason : `${target}: ${reason}`
  return { state: 'failed', stage: 'deliver', code, detail, targets }
}
