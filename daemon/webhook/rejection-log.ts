import type { Log } from '../log/log.ts'

export type Refusal = {
  readonly event: string
  readonly webhook: string
  readonly code: string
}

/** Logs refused deliveries without letting a flood of them fill the log. */
export type RejectionLog = {
  readonly note: (refusal: Refusal) => void
  /** Logs what was counted and not logged yet. */
  readonly close: () => void
}

const windowMs = 10_000

/**
 * Logs the first refusal of a webhook with a code; those of the next ten seconds are counted and logged as
 * one line. Any client can cause a refusal, and the size of the log is limited.
 */
export const createRejectionLog = (log: Log, everyMs = windowMs): RejectionLog => {
  type Counted = { more: number; last: Refusal; timer: NodeJS.Timeout }
  const open = new Map<string, Counted>()

  const say = ({ more, last: { event, ...why } }: Counted) =>
    log.info({ ...why, refused: more, lastEvent: event }, 'more events refused')
  const afterWindow = (key: string) => {
    const counted = open.get(key)
    if (!counted) return
    if (counted.more === 0) {
      open.delete(key)
      return
    }
    say(counted)
    counted.more = 0
    counted.timer = startWindow(key)
  }
  const startWindow = (key: string) => setTimeout(() => afterWindow(key), everyMs).unref()

  return {
    note: (refusal) => {
      const key = `${refusal.code} ${refusal.webhook}`
      const counted = open.get(key)
      if (counted) {
        counted.more += 1
        counted.last = refusal
        return
      }
      open.set(key, { more: 0, last: refusal, timer: startWindow(key) })
      log.info(refusal, 'event')
    },
    close: () => {
      for (const counted of open.values()) {
        clearTimeout(counted.timer)
        if (counted.more > 0) say(counted)
      }
      open.clear()
    },
  }
}
