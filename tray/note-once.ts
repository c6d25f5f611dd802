import type { EventRecord, Status } from '../shared/api.ts'
import { type Crowd, type Step, join, noCrowd, release } from './coalesce.ts'
import { type Note, daemonKey, keyOf, noteOf } from './note.ts'
import { nothingTold, notesOfStatus } from './state-notes.ts'

const remembered = 500

export type Notes = {
  /** Something happened: shown once per final state, also when it comes twice. */
  readonly event: (event: EventRecord) => void
  /** The daemon stands so: what is new in that is shown. */
  readonly status: (status: Status) => void
  /** Shown unless notifications are off. */
  readonly tell: (note: Note) => void
  readonly stop: () => void
}

export type NotesParts = {
  readonly show: (note: Note) => void
  /** The note with this key is no longer so. */
  readonly takeAway: (key: string) => void
  /** While it answers false, only events that are for the desktop by their targets are shown. */
  readonly isOn: () => boolean
  /** True while a login to this provider is told in answer to a click. */
  readonly tellsLogin?: (provider: string) => boolean
}

/** Passes on the notes of what the daemon says, more than 3 in 10 s as one. */
export const noteOnce = ({ show, takeAway, isOn, tellsLogin = () => false }: NotesParts): Notes => {
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
      const note = noteOf(event, isOn())
      const key = keyOf(event)
      if (!note || seen.has(key)) return
      seen.add(key)
      const [oldest] = seen
      if (oldest !== undefined && seen.size > remembered) seen.delete(oldest)
      take(join(crowd, note, performance.now()))
    },
    status: (status) => {
      const news = notesOfStatus(status, told, tellsLogin)
      ;({ told } = news)
      if (isDaemonMissed) takeAway(daemonKey)
      isDaemonMissed = false
      news.over.forEach(takeAway)
      news.notes.forEach(tell)
    },
    tell,
    stop: () => clearTimeout(timer),
  }
}
