import type { Status } from '../shared/api.ts'

/** When a daemon that was stopped ends, in words; undefined of one that goes on. */
export const endingWords = ({
  stopping,
  queue,
}: Pick<Status, 'stopping' | 'queue'>): string | undefined => {
  if (!stopping) return undefined
  const unfinished = queue.running + queue.waiting
  if (unfinished === 0) return 'now'
  const work = unfinished === 1 ? 'an accepted event is' : `${unfinished} accepted events are`
  return `when ${work} finished`
}
