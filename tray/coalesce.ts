import { type Note, bodyOf, titleOf } from './note.ts'

/** What was shown lately, and what waits to be shown as one. */
export type Crowd = {
  /** When the last notes were shown, milliseconds. */
  readonly shownAt: readonly number[]
  readonly waiting: readonly Note[]
  /** Waiting notes whose text was not kept, so that a flood does not fill the memory. */
  readonly uncounted: number
}

export const windowMs = 10_000
const maxShown = 3
const maxKept = 20

export const noCrowd: Crowd = { shownAt: [], waiting: [], uncounted: 0 }

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
  const full = crowd.waiting.length >= maxKept
  return {
    crowd: {
      shownAt,
      waiting: full ? crowd.waiting : [...crowd.waiting, note],
      uncounted: crowd.uncounted + (full ? 1 : 0),
    },
    show: [],
    releaseAt: (shownAt[0] ?? now) + windowMs,
  }
}

/** Shows what waits: a single note as it is, several as one that lists their titles. */
export const release = (crowd: Crowd, now: number): Step => {
  const { waiting, uncounted } = crowd
  const [first] = waiting
  if (!first) return { crowd, show: [] }
  const count = waiting.length + uncounted
  const titles = waiting.map(({ title }) => title.replace(/^Doorward · /, ''))
  const note =
    count === 1
      ? first
      : { title: titleOf(`${count} more events`), body: bodyOf(titles.join('\n')) }
  const shownAt = crowd.shownAt.filter((time) => now - time < windowMs)
  return { crowd: { shownAt: [...shownAt, now], waiting: [], uncounted: 0 }, show: [note] }
}
