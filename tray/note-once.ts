import type { EventRecord } from '../shared/api.ts'
import { type Crowd, type Step, join, noCrowd, release } from './coalesce.ts'
import { type Note, keyOf, noteOf } from './note.ts'

const remembered = 500

/** Passes on the notes of events: each final state once, more than 3 in 10 s as one. */
export const noteOnce = (
  show: (note: Note) => void,
): { readonly event: (event: EventRecord) => void; readonly stop: () => void } => {
  const seen = new Set<string>()
  let crowd: Crowd = noCrowd
  let timer: NodeJS.Timeout | undefined

  const take = (step: Step): void => {
    crowd = step.crowd
    step.show.forEach(show)
    if (step.releaseAt === undefined || timer) return
    timer = setTimeout(() => {
      timer = undefined
      take(release(crowd, Date.now()))
    }, step.releaseAt - Date.now())
  }

  return {
    event: (event) => {
      const note = noteOf(event)
      const key = keyOf(event)
      if (!note || seen.has(key)) return
      seen.add(key)
      if (seen.size > remembered) for (const oldest of [...seen].slice(0, 1)) seen.delete(oldest)
      take(join(crowd, note, Date.now()))
    },
    stop: () => clearTimeout(timer),
  }
}
