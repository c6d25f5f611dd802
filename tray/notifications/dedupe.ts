import type { EventRecord, Status } from '../../shared/api.ts'
import { toBody, daemonKey, toKey, type Note, toNote, toTitle } from './note.ts'
import { notesOfStatus, nothingTold } from './state-notes.ts'

const remembered = 500

type Notes = {
  /** Something happened: shown once per final state, also when it comes twice. */
  readonly event: (event: EventRecord) => void
  /** The daemon stands so: what is new in that is shown. */
  readonly status: (status: Status) => void
  /** Shown unless notifications are off. */
  readonly tell: (note: Note) => void
  readonly stop: () => void
}

type NotesParts = {
  readonly show: (note: Note) => void
  /** The note with this key is no longer so. */
  readonly close: (key: string) => void
  /** While it answers false, only events that are for the desktop by their targets are shown. */
  readonly isOn: () => boolean
  /** True while a login to this provider is told in answer to a click. */
  readonly tellsLogin?: (provider: string) => boolean
}

/** Passes on the notes of what the daemon says, more than 3 in 10 s as one. */
export const noteOnce = ({ show, close, isOn, tellsLogin = () => false }: NotesParts): Notes => {
  const seen = new Set<string>()
  let told = nothingTold
  let isDaemonMissed = false
  let crowd: Crowd = noCrowd
  let timer: NodeJS.Timeout | undefined

  const take = (step: Step): void => {
    crowd = step.crowd
    step.show.forEach(show)
    if (step.releaseAt === undefined || timer) return
    timer = setTimeout(() => {
      timer = undefined
      take(release(crowd, performance.now()))
    }, step.releaseAt - performance.now())
  }
  const tell = (note: Note): void => {
    isDaemonMissed ||= note.key === daemonKey
    if (isOn()) take(join(crowd, note, performance.now()))
  }

  return {
    event: (event) => {
      const note = toNote(event, isOn())
      const key = toKey(event)
      if (!note || seen.has(key)) return
      seen.add(key)
      const [oldest] = seen
      if (oldest !== undefined && seen.size > remembered) seen.delete(oldest)
      take(join(crowd, note, performance.now()))
    },
    status: (status) => {
      const news = notesOfStatus(status, told, tellsLogin)
      ;({ told } = news)
      if (isDaemonMissed) close(daemonKey)
      isDaemonMissed = false
      news.over.forEach(close)
      news.notes.forEach(tell)
    },
    tell,
    stop: () => clearTimeout(timer),
  }
}

/** What was shown lately, and what waits to be shown as one. */
export type Crowd = {
  /** When the last notes were shown, milliseconds. */
  readonly shownAt: readonly number[]
  readonly waiting: readonly Note[]
  /** Everything that waits, also that whose text was not kept, so that a flood does not fill the memory. */
  readonly counts: Counts
}

type Counts = { readonly all: number; readonly runs: number; readonly failedRuns: number }

const windowMs = 10_000
const maxShown = 3
const maxKept = 20

const none: Counts = { all: 0, runs: 0, failedRuns: 0 }
export const noCrowd: Crowd = { shownAt: [], waiting: [], counts: none }

type Step = {
  readonly crowd: Crowd
  /** To be shown now. */
  readonly show: readonly Note[]
  /** When to call `release`, milliseconds; undefined when nothing waits. */
  readonly releaseAt?: number
}

/** Takes in a note: the first 3 in 10 s are shown at once, the others wait to become one. */
export const join = (crowd: Crowd, note: Note, now: number): Step => {
  const shownAt = crowd.shownAt.filter((time) => now - time < windowMs)
  if (shownAt.length < maxShown && crowd.waiting.length === 0)
    return { crowd: { ...crowd, shownAt: [...shownAt, now] }, show: [note] }
  const { waiting, counts } = crowd
  return {
    crowd: {
      shownAt,
      waiting: waiting.length < maxKept ? [...waiting, note] : waiting,
      counts: {
        all: counts.all + 1,
        runs: counts.runs + (note.isRun ? 1 : 0),
        failedRuns: counts.failedRuns + (note.isRun && note.failure ? 1 : 0),
      },
    },
    show: [],
    releaseAt: (shownAt[0] ?? now) + windowMs,
  }
}

/** Shows what waits: a single note as it is, several as one that lists their titles. */
export const release = (crowd: Crowd, now: number): Step => {
  const [first] = crowd.waiting
  if (!first) return { crowd, show: [] }
  const shownAt = crowd.shownAt.filter((time) => now - time < windowMs)
  return {
    crowd: { shownAt: [...shownAt, now], waiting: [], counts: none },
    show: [crowd.counts.all === 1 ? first : toSummaryNote(crowd)],
  }
}

const toSummaryNote = ({ waiting, counts: { all, runs, failedRuns } }: Crowd): Note => {
  const others = all - runs
  const what = [
    ...(runs > 0 ? [`${runs} more ${runs === 1 ? 'run' : 'runs'} finished`] : []),
    ...(failedRuns > 0 ? [`${failedRuns} failed`] : []),
    ...(others > 0 ? [`${others} other ${others === 1 ? 'note' : 'notes'}`] : []),
  ]
  const titles = waiting.map(({ title }) => title.replace(/^Doorward · /, ''))
  return {
    title: toTitle(what.join(', ')),
    body: toBody([...new Set(titles)].join('\n')),
    ...(waiting.some(({ failure }) => failure) || failedRuns > 0 ? { failure: true } : {}),
  }
}
