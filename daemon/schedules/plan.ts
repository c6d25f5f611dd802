import { hash } from 'node:crypto'
import type { ScheduleSummary } from '../../shared/api/schedules.ts'
import type { Schedule } from '../../shared/schedules/schedule.ts'
import type { ScheduleState } from './schedule-state.ts'

/*
 * The next step of a schedule at a moment. Pure: all times are milliseconds since 1970.
 */

/** How late a time may be that was not missed: a timer, or a restart, may take so long. */
const graceMs = 90_000
const dayMs = 86_400_000
const shownRuns = 3

/** Something to do: a time to run, or times that were missed. */
export type Step =
  | { readonly kind: 'wait' }
  | { readonly kind: 'run'; readonly due: number }
  | { readonly kind: 'pass' | 'ask'; readonly due: number; readonly count: number }

/** Nothing before this moment is due of a schedule that is new, or has other times now. */
export const currentState = (
  { times }: Schedule,
  known: ScheduleState | undefined,
  now: number,
): ScheduleState => {
  // A clock that was far ahead would stop it for as long.
  if (known?.text === times.text && known.lastDue - now <= dayMs) return known
  const { lastRun, paused } = known ?? {}
  return {
    text: times.text,
    lastDue: now,
    ...(lastRun !== undefined && { lastRun }),
    ...(paused && { paused }),
  }
}

export const planStep = (schedule: Schedule, state: ScheduleState, now: number): Step => {
  const found = state.paused ? undefined : schedule.times.due(state.lastDue, now)
  if (!found) return { kind: 'wait' }
  const { newest: due, count } = found
  const at = due + jitterOf(schedule, due)
  if (at > now) return { kind: 'wait' }
  if (now - at <= graceMs || schedule.missed === 'run_once') return { kind: 'run', due }
  return { kind: schedule.missed === 'skip' ? 'pass' : 'ask', due, count }
}

/** When it has something to do next. */
export const nextStepAt = (schedule: Schedule, { lastDue, paused }: ScheduleState) => {
  const next = paused ? undefined : schedule.times.next(lastDue, lastDue)
  return next === undefined ? undefined : next + jitterOf(schedule, next)
}

/** The same for each look at one time, and another one for the next. */
const jitterOf = ({ name, jitterMs }: Schedule, due: number): number =>
  jitterMs === 0 ? 0 : Number.parseInt(hash('sha256', `${name} ${due}`).slice(0, 8), 16) % jitterMs

export const toIso = (ms: number): string => new Date(ms).toISOString()

export const describeMissed = (count: number, newest: number): string =>
  `${count === 1 ? 'one run was' : `${count} runs were`} missed, the newest of ${toIso(newest)}: this machine slept or was off`

/** A schedule as its owner sees it. */
export const describeSchedule = (
  { name, enabled, times, timezone, webhook }: Schedule,
  { lastDue, lastRun, paused, missed }: ScheduleState,
  now: number,
): ScheduleSummary => {
  const nextRuns: string[] = []
  let next = enabled && !paused ? times.next(Math.max(now, lastDue), lastDue) : undefined
  while (next !== undefined && nextRuns.length < shownRuns) {
    nextRuns.push(toIso(next))
    next = times.next(next, lastDue)
  }
  return {
    name,
    agent: webhook.rules[0]?.agentName ?? '',
    timezone: timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
    nextRuns,
    paused: paused ?? false,
    enabled,
    lastRunAt: lastRun === undefined ? null : toIso(lastRun),
    deliverTo: webhook.rules.flatMap(({ targets }) => targets.map(({ text }) => text)),
    ...(missed && { missed: { count: missed.count, newestAt: toIso(missed.newest) } }),
  }
}
