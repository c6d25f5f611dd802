import type { Lesson } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { lessonOf } from './lesson.ts'
import type { Payload } from './parse.ts'

/** Those who wait to see what the next delivery at a webhook looks like. */
export type Learners = {
  /** Waits for it. Throws `stopping` when the daemon stops, `interrupted` when the signal ends it. */
  readonly wait: (webhook: string, signal: AbortSignal) => Promise<Lesson>
  /** Shows a verified payload to those who wait for one of this webhook. */
  readonly show: (webhook: string, payload: Payload) => void
  readonly close: () => void
}

export const createLearners = (): Learners => {
  type Waiting = {
    readonly webhook: string
    readonly learn: (lesson: Lesson) => void
    readonly give: (error: DoorwardError) => void
  }
  const waiting = new Set<Waiting>()
  return {
    wait: async (webhook, signal) =>
      new Promise((resolve, reject) => {
        const one = { webhook, learn: resolve, give: reject }
        waiting.add(one)
        const leave = () => {
          waiting.delete(one)
          reject(new DoorwardError('interrupted', 'nobody waits for the delivery any more'))
        }
        if (signal.aborted) leave()
        else signal.addEventListener('abort', leave)
      }),
    show: (webhook, payload) => {
      for (const one of waiting) {
        if (one.webhook !== webhook) continue
        waiting.delete(one)
        one.learn(lessonOf(webhook, payload))
      }
    },
    close: () => {
      for (const { give } of waiting) give(new DoorwardError('stopping', 'the daemon is stopping'))
      waiting.clear()
    },
  }
}
