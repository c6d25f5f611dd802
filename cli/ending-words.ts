import type { Status } from '../shared/api.ts'
import { whenFinished } from '../shared/privacy.ts'

/** When a daemon that was stopped ends, in words; undefined of one that goes on. */
export const endingWords = ({
  stopping,
  queue,
}: Pick<Status, 'stopping' | 'queue'>): string | undefined => {
  if (!stopping) return undefined
  const unfinished = queue.running + queue.waiting
  return unfinished === 0 ? 'now' : whenFinished(unfinished)
}
