import { hash } from 'node:crypto'
import { isFinal } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import { longTimeout } from '../../util/concurrency.ts'
import type { CompiledRule } from '../compiled-webhook.ts'
import type { EventScope } from '../read-delivery.ts'
import { textOfValue, valueAt } from '../../util/payload-path.ts'
import { formatPath } from '../../../shared/paths.ts'
import type { Template } from '../../../shared/templates.ts'
import type { Limited } from './budgets.ts'

/** What of `coalesce` an event keeps. Times are those of the wall clock, so that they last over a restart. */
export type Coalesced = {
  /** A hash of the rule and the key: the key itself is text of the sender. */
  readonly group: string
  /** When the first of the events arrived that this one is the newest of. */
  readonly since: number
  readonly quietMs: number
  readonly atMostMs: number
  readonly running: 'finish' | 'cancel'
  /** A replaced event has not run, so it does not count. */
  readonly rule: Limited
}

/** The group of an event, or the placeholder of its key that is empty in it. */
export const toCoalesced = (
  rule: CompiledRule,
  scope: EventScope,
  receivedAt: Date,
): Coalesced | string | undefined => {
  const { coalesce, path, name, maxRuns } = rule
  if (!coalesce) return undefined
  const { key, quietMs, atMostMs, running } = coalesce
  const texts = expandKey(key, scope)
  if (typeof texts === 'string') return texts
  const group = hash('sha256', JSON.stringify([path, name ?? '', ...texts]))
  const since = receivedAt.getTime()
  return { group, since, quietMs, atMostMs, running, rule: { path, name, maxRuns } }
}

/** The parts of a key, or the placeholder of it that is empty in this event. */
export const expandKey = ({ parts }: Template, scope: EventScope): readonly string[] | string => {
  const texts: string[] = []
  for (const part of parts) {
    const text = typeof part === 'string' ? part : textOfValue(valueAt(scope, part))
    if (typeof part !== 'string' && text.trim() === '') return `{{${formatPath(part)}}}`
    texts.push(text)
  }
  return texts
}

/** Why an event is not coalesced: this placeholder of its key is empty. */
export const describeEmptyKey = (placeholder: string): string =>
  `not coalesced: ${placeholder} of the key is empty in this event`

/** What identifies the comment that the answer updates: the key of `coalesce`, else the rule. */
export const toUpdateKey = (
  { path, name }: CompiledRule,
  coalesced: ReturnType<typeof toCoalesced>,
): string => (typeof coalesced === 'object' ? coalesced.group : `${path} ${name ?? ''}`)

type Group = {
  /** The newest event, until it runs. */
  waiting?: { readonly id: string; readonly since: number; readonly dueAt: number }
  timer?: NodeJS.Timeout
  /** The event that runs, here or in the process before a restart. */
  running?: string
}

type Actions = {
  /** Stops an event, wherever it waits or runs. */
  readonly cancel: (id: string) => void
  /** Starts what may start. */
  readonly trigger: () => void
}

/**
 * Of the events with one key the newest waits until it is quiet, and runs when no other of them does. It
 * replaces the one that waited, and with `running: cancel` the one whose agent runs.
 */
export class EventGroups {
  readonly #events: Pick<EventStore, 'record'>
  readonly #groups = new Map<string, Group>()
  /** The groups of events that wait or run. */
  readonly #groupOf = new Map<string, string>()
  readonly #replacedBy = new Map<string, string>()

  constructor(events: Pick<EventStore, 'record' | 'follow'>) {
    this.#events = events
    events.follow(({ record: { id, state } }) => {
      const name = this.#groupOf.get(id)
      if (name === undefined) return
      if (isFinal(state)) this.#leave(id, name)
      else if (state === 'running' || state === 'delivering') this.noteRunning(id, name)
    })
  }

  /** True when an event of the group waits, which the next one replaces. */
  hasWaiting({ group }: Coalesced): boolean {
    return this.#groups.get(group)?.waiting !== undefined
  }

  /** With the arrival of the first event that it is the newest of. */
  stamp(coalesced: Coalesced): Coalesced {
    const { since = coalesced.since } = this.#groups.get(coalesced.group)?.waiting ?? {}
    return { ...coalesced, since }
  }

  /** Makes an event that was queued the newest of its group. */
  join(id: string, receivedAt: Date, coalesced: Coalesced, { cancel, trigger }: Actions): void {
    const { group: name, since, quietMs, atMostMs, running } = coalesced
    const group = this.#groupAt(name)
    const { waiting: older } = group
    const dueAt = Math.min(receivedAt.getTime() + quietMs, since + atMostMs)
    group.waiting = { id, since, dueAt }
    this.#groupOf.set(id, name)
    clearTimeout(group.timer)
    // A clock that was set back must not keep it longer.
    const waitMs = Math.min(Math.max(dueAt - Date.now(), 0), quietMs)
    group.timer = longTimeout(() => {
      if (group.waiting?.id === id) group.waiting = { id, since, dueAt: 0 }
      trigger()
    }, waitMs).unref()
    if (older) this.#replace(older.id, id, cancel)
    const { running: runs } = group
    if (
      running === 'cancel' &&
      runs !== undefined &&
      this.#events.record(runs)?.state === 'running'
    )
      this.#replace(runs, id, cancel)
  }

  /** True when it may start; `isStopping` does not wait for quiet. */
  isReady(id: string, name: string, isStopping: boolean): boolean {
    const { waiting, running } = this.#groups.get(name) ?? {}
    if (running !== undefined || waiting?.id !== id) return running === undefined
    return isStopping || Date.now() >= waiting.dueAt
  }

  /** The event that replaced this one. */
  replacedBy(id: string): string | undefined {
    return this.#replacedBy.get(id)
  }

  /** Notes that an event of a group runs, or is run by the process before a restart. */
  noteRunning(id: string, name: string): void {
    const group = this.#groupAt(name)
    this.#groupOf.set(id, name)
    group.running = id
    if (group.waiting?.id !== id) return
    clearTimeout(group.timer)
    delete group.waiting
  }

  #replace(id: string, newer: string, cancel: Actions['cancel']): void {
    this.#replacedBy.set(id, newer)
    cancel(id)
  }

  #leave(id: string, name: string): void {
    this.#groupOf.delete(id)
    this.#replacedBy.delete(id)
    const group = this.#groups.get(name)
    if (!group) return
    if (group.running === id) delete group.running
    if (group.waiting?.id === id) {
      clearTimeout(group.timer)
      delete group.waiting
    }
    if (!group.running && !group.waiting) this.#groups.delete(name)
  }

  #groupAt(name: string): Group {
    const known = this.#groups.get(name)
    if (known) return known
    const group: Group = {}
    this.#groups.set(name, group)
    return group
  }
}
