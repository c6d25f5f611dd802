import { type Note, bodyOf, titleOf } from './note.ts'

/** What was shown lately, and what waits to be shown as one. */
export type Crowd = {
  /** When the last notes were shown, milliseconds. */
  readonly shownAt: readonly number[]
  readonly waiting: readonly Note[]
  /** Everything that waits, also that whose text was not kept, so that a flood does not fill the memory. */
  readonly counts: Counts
}

type Counts = { readonly all: number; readonly runs: number; readonly failedRuns: number }

export const windowMs = 10_000
const maxShown = 3
const maxKept = 20

const none: Counts = { all: 0, runs: 0, failedRuns: 0 }
export const noCrowd: Crowd = { shownAt: [], waiting: [], counts: none }

export type Step = {
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
    show: [crowd.counts.all === 1 ? first : summaryOf(crowd)],
  }
}

const summaryOf = ({ waiting, counts: { all, runs, failedRuns } }: Crowd): Note => {
  const others = all - runs
  const what = [
    ...(runs > 0 ? [`${runs} more ${runs === 1 ? 'run' : 'runs'} finished`] : []),
    ...(failedRuns > 0 ? [`${failedRuns} failed`] : []),
    ...(others > 0 ? [`${others} other ${others === 1 ? 'note' : 'notes'}`] : []),
  ]
  const titles = waiting.map(({ title }) => title.replace(/^Doorward · /, ''))
  return {
    title: titleOf(what.join(', ')),
    body: bodyOf([...new Set(titles)].join('\n')),
    ...(waiting.some(({ failure }) => failure) || failedRuns > 0 ? { failure: true } : {}),
  }
}
