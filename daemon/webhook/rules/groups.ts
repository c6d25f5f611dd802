import { hash } from 'node:crypto'
import type { Coalesce } from '../../../shared/config/rule.ts'
import { isFinal } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import { BoundedMap } from '../../util/collections.ts'
import { longTimeout } from '../../util/concurrency.ts'
import type { Payload } from '../body.ts'
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
  /** The sender's own time of it, or the number of `order_by`. */
  readonly order?: number
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
  const order = getOrder(rule, coalesce, scope)
  const ordered = order === undefined ? {} : { order }
  return { group, since, quietMs, atMostMs, running, ...ordered, rule: { path, name, maxRuns } }
}

/** Senders do not promise to deliver in order. Undefined where only the arrival says what is newer. */
const getOrder = (
  { hasUpdatedAt }: CompiledRule,
  { orderBy }: Coalesce,
  scope: EventScope,
): number | undefined => {
  if (!orderBy) return hasUpdatedAt ? getLastUpdate(scope.event) : undefined
  const texts = expandKey(orderBy, scope)
  return typeof texts === 'string' ? undefined : toOrder(texts.join(''))
}

/** Parts of a payload that may change without the event, and earlier or later than what it is about. */
const surroundings = new Set([
  'repository',
  'project',
  'organization',
  'sender',
  'user',
  'workflow',
])

const getLastUpdate = (payload: Payload): number | undefined => {
  if (typeof payload !== 'object' || payload === null) return undefined
  const times = Object.entries(payload).flatMap(([name, value]) =>
    surroundings.has(name) ? [] : (toOrder(textOfValue(valueAt(value, ['updated_at']))) ?? []),
  )
  return times.length === 0 ? undefined : Math.max(...times)
}

/** A number, or a time such as `2026-11-27T20:54:11Z` or GitLab's `2026-11-27 20:54:11 UTC`. */
const toOrder = (text: string): number | undefined => {
  if (/^-?\d{1,18}(\.\d{1,9})?$/.test(text)) return Number(text)
  if (!/^\d{4}-\d\d-\d\d[T ][\d:.]{5,18} ?(Z|UTC|[+-]\d\d:?\d\d)?$/.test(text)) return undefined
  const ms = Date.parse(text)
  return Number.isNaN(ms) ? undefined : ms
}

/** The parts of a key, or the placeholder of it that is empty in this event. */
export const expandKey = ({ parts }: Template, scope: object): readonly string[] | string => {
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

const cameBefore = (id: string): string => `a newer event came before it: ${id}`

type Actions = {
  /** Stops an event, wherever it waits or runs. */
  readonly cancel: (id: string) => void
  /** Starts what may start. */
  readonly trigger: () => void
}

/** Why an event was ended, and the newer event in its place. */
export type Replacement = { readonly why: string; readonly newer?: string }

/** Groups whose newest event is remembered when it is over, as an older one may still arrive. */
const maxNewest = 10_000

/**
 * Of the events with one key the newest waits until it is quiet, and runs when no other of them does. It
 * replaces the one that waited, and with `running: cancel` the one whose agent runs.
 */
export class EventGroups {
  readonly #events: Pick<EventStore, 'record'>
  readonly #groups = new Map<string, Group>()
  /** The groups of events that wait or run. */
  readonly #groupOf = new Map<string, string>()
  readonly #replacements = new Map<string, Replacement>()
  /** The order of the newest event of each group, and what an older one is told. */
  readonly #newest = new BoundedMap<string, { readonly order: number; readonly why: string }>(
    maxNewest,
  )

  constructor(events: Pick<EventStore, 'record' | 'follow'>) {
    this.#events = events
    events.follow(({ record: { id, state } }) => {
      const name = this.#groupOf.get(id)
      if (name === undefined) return
      // Nothing runs while a person is asked.
      if (isFinal(state) || state === 'waiting') this.#leave(id, name)
      else if (state === 'running' || state === 'delivering') this.noteRunning(id, name)
    })
  }

  /** True when an event of the group waits, which the next one replaces. */
  hasWaiting({ group }: Coalesced): boolean {
    return this.#groups.get(group)?.waiting !== undefined
  }

  /** Why an event is too old to run: a newer one of its group came before. */
  newerThan({ group, order }: Coalesced): string | undefined {
    const newest = this.#newest.get(group)
    return newest && order !== undefined && order < newest.order ? newest.why : undefined
  }

  /** With the arrival of the first event that it is the newest of. */
  stamp(coalesced: Coalesced): Coalesced {
    const { since = coalesced.since } = this.#groups.get(coalesced.group)?.waiting ?? {}
    return { ...coalesced, since }
  }

  /** Makes an event that was queued the newest of its group. */
  join(id: string, receivedAt: Date, coalesced: Coalesced, { cancel, trigger }: Actions): void {
    const { group: name, since, quietMs, atMostMs, running } = coalesced
    this.#groupOf.set(id, name)
    // Another machine has confirmed it after the newer one.
    if (this.newerThan(coalesced) !== undefined)
      return this.#replace(id, { why: 'a newer event overtook it' }, cancel)
    this.#noteNewest(coalesced, cameBefore(id))
    const group = this.#groupAt(name)
    const { waiting: older } = group
    const dueAt = Math.min(receivedAt.getTime() + quietMs, since + atMostMs)
    group.waiting = { id, since, dueAt }
    clearTimeout(group.timer)
    // A clock that was set back must not keep it longer.
    const waitMs = Math.min(Math.max(dueAt - Date.now(), 0), quietMs)
    group.timer = longTimeout(() => {
      if (group.waiting?.id === id) group.waiting = { id, since, dueAt: 0 }
      trigger()
    }, waitMs).unref()
    const replacement = { why: 'a newer event replaced it', newer: id }
    if (older) this.#replace(older.id, replacement, cancel)
    if (running === 'cancel') this.#replaceRunning(group, replacement, cancel)
  }

  /** Ends what waits or runs, for an event that `cancel_on` calls `name`. An older one ends nothing. */
  end(coalesced: Coalesced, name: string, cancel: Actions['cancel']): void {
    if (this.newerThan(coalesced) !== undefined) return
    this.#noteNewest(coalesced, `${name} came before it`)
    const group = this.#groups.get(coalesced.group)
    if (!group) return
    const replacement = { why: `${name} ended it` }
    if (group.waiting) this.#replace(group.waiting.id, replacement, cancel)
    this.#replaceRunning(group, replacement, cancel)
  }

  /** True when it may start; `isStopping` does not wait for quiet. */
  isReady(id: string, name: string, isStopping: boolean): boolean {
    const { waiting, running } = this.#groups.get(name) ?? {}
    if (running !== undefined || waiting?.id !== id) return running === undefined
    return isStopping || Date.now() >= waiting.dueAt
  }

  replacementOf(id: string): Replacement | undefined {
    return this.#replacements.get(id)
  }

  /** Notes that an event of a group runs, or is run by the process before a restart. */
  noteRunning(id: string, name: string, coalesced?: Coalesced): void {
    if (coalesced) this.#noteNewest(coalesced, cameBefore(id))
    const group = this.#groupAt(name)
    this.#groupOf.set(id, name)
    group.running = id
    if (group.waiting?.id !== id) return
    clearTimeout(group.timer)
    delete group.waiting
  }

  #noteNewest({ group, order }: Coalesced, why: string): void {
    if (order !== undefined) this.#newest.set(group, { order, why })
  }

  #replace(id: string, replacement: Replacement, cancel: Actions['cancel']): void {
    this.#replacements.set(id, replacement)
    cancel(id)
  }

  #replaceRunning({ running }: Group, replacement: Replacement, cancel: Actions['cancel']): void {
    if (running !== undefined && this.#events.record(running)?.state === 'running')
      this.#replace(running, replacement, cancel)
  }

  #leave(id: string, name: string): void {
    this.#groupOf.delete(id)
    this.#replacements.delete(id)
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
