import type { EventRecord, Status } from '../../shared/api/api.ts'
import { toBody, daemonKey, toKey, type Note, toNote } from './note.ts'
import { toLabel } from '../text.ts'
import { toStatusNotes, nothingAnnounced } from './state-notes.ts'

const maxRemembered = 500

export type Announcer = {
  /** Shows how an event ended, once per final state even when the daemon repeats it. */
  readonly event: (event: EventRecord) => void
  /** Shows what is new in the status of the daemon, and closes what no longer applies. */
  readonly status: (status: Status) => void
  /** Shows the note unless notifications are off. */
  readonly show: (note: Note) => void
  readonly stop: () => void
}

type AnnouncerOptions = {
  readonly show: (note: Note) => void
  /** Closes the note with this key. */
  readonly close: (key: string) => void
  /** While this is false, only events with `notify:desktop` among their targets are shown. */
  readonly isOn: () => boolean
  /** True while the tray shows the outcome of a login to this provider anyway. */
  readonly isReportingLogin?: (provider: string) => boolean
}

/** Turns what the daemon reports into notes, each shown once; more than 3 in 10 s become one. */
export const createAnnouncer = ({
  show,
  close,
  isOn,
  isReportingLogin = () => false,
}: AnnouncerOptions): Announcer => {
  const seen = new Set<string>()
  let announced = nothingAnnounced
  let hasDaemonNote = false
  let burst: Burst = emptyBurst
  let timer: NodeJS.Timeout | undefined

  const apply = (step: Step): void => {
    burst = step.burst
    step.show.forEach(show)
    if (step.flushAt === undefined || timer) return
    timer = setTimeout(() => {
      timer = undefined
      apply(flushBurst(burst, performance.now()))
    }, step.flushAt - performance.now())
  }
  const showIfOn = (note: Note): void => {
    hasDaemonNote ||= note.key === daemonKey
    if (isOn()) apply(addToBurst(burst, note, performance.now()))
  }

  return {
    event: (event) => {
      // Someone has answered, here or elsewhere.
      if (event.approval && event.state !== 'waiting') close(`event ${event.id}`)
      const note = toNote(event, isOn())
      const key = toKey(event)
      if (!note || seen.has(key)) return
      seen.add(key)
      const [oldest] = seen
      if (oldest !== undefined && seen.size > maxRemembered) seen.delete(oldest)
      apply(addToBurst(burst, note, performance.now()))
    },
    status: (status) => {
      const changes = toStatusNotes(status, announced, isReportingLogin)
      ;({ announced } = changes)
      if (hasDaemonNote) close(daemonKey)
      hasDaemonNote = false
      changes.resolved.forEach(close)
      changes.notes.forEach(showIfOn)
    },
    show: showIfOn,
    stop: () => clearTimeout(timer),
  }
}

/** What was shown in the last 10 s, and what waits to be shown as one note. */
export type Burst = {
  /** When the last notes were shown, milliseconds. */
  readonly shownAt: readonly number[]
  readonly waiting: readonly Note[]
  /** Of all that wait; `waiting` keeps only the first, so that a flood cannot fill the memory. */
  readonly counts: Counts
}

type Counts = { readonly all: number; readonly runs: number; readonly failedRuns: number }

const windowMs = 10_000
const maxShown = 3
const maxKept = 20

const zero: Counts = { all: 0, runs: 0, failedRuns: 0 }
export const emptyBurst: Burst = { shownAt: [], waiting: [], counts: zero }

type Step = {
  readonly burst: Burst
  /** The notes to show now. */
  readonly show: readonly Note[]
  /** When to call `release`, milliseconds; undefined when nothing waits. */
  readonly flushAt?: number
}

/** Adds a note: the first 3 in 10 s are shown immediately, the others wait to become one. */
export const addToBurst = (burst: Burst, note: Note, now: number): Step => {
  const shownAt = burst.shownAt.filter((time) => now - time < windowMs)
  if (shownAt.length < maxShown && burst.waiting.length === 0)
    return { burst: { ...burst, shownAt: [...shownAt, now] }, show: [note] }
  const { waiting, counts } = burst
  return {
    burst: {
      shownAt,
      waiting: waiting.length < maxKept ? [...waiting, note] : waiting,
      counts: {
        all: counts.all + 1,
        runs: counts.runs + (note.isRun ? 1 : 0),
        failedRuns: counts.failedRuns + (note.isRun && note.failure ? 1 : 0),
      },
    },
    show: [],
    flushAt: (shownAt[0] ?? now) + windowMs,
  }
}

/** Shows what waits: a single note unchanged, several as one that lists their subjects. */
export const flushBurst = (burst: Burst, now: number): Step => {
  const [first] = burst.waiting
  if (!first) return { burst, show: [] }
  const shownAt = burst.shownAt.filter((time) => now - time < windowMs)
  return {
    burst: { shownAt: [...shownAt, now], waiting: [], counts: zero },
    show: [burst.counts.all === 1 ? first : toSummaryNote(burst)],
  }
}

const toSummaryNote = ({ waiting, counts: { all, runs, failedRuns } }: Burst): Note => {
  const others = all - runs
  const what = [
    ...(runs > 0 ? [`${runs} more ${runs === 1 ? 'run' : 'runs'} finished`] : []),
    ...(failedRuns > 0 ? [`${failedRuns} failed`] : []),
    ...(others > 0 ? [`${others} other ${others === 1 ? 'note' : 'notes'}`] : []),
  ]
  const subjects = waiting.map(({ subject }) => toLabel(subject))
  return {
    subject: what.join(', '),
    body: toBody([...new Set(subjects)].join('\n')),
    ...(waiting.some(({ failure }) => failure) || failedRuns > 0 ? { failure: true } : {}),
  }
}
