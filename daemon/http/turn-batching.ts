/*
 * A turn of the loop takes in what has come, request by request. An answer that is written in between wakes its
 * client, which on a busy machine costs as much again as the write; of answers that are written one right after
 * the other the first one does. So they go out together when the turn has taken in what there is, which for one
 * alone is at once, and only then comes what may take long. Whoever came while something took long has waited
 * for that already, and not for the others who did.
 */

type Step = () => void

/** What is put off until a turn of the loop ends. */
export type EndOfTurn = {
  /** Sends an answer when the turn ends, in the order of the calls. `send` must not throw. */
  readonly answerAtEndOfTurn: (send: Step) => void
  /** Does this when the turn ends, after its answers; what is put off meanwhile comes in the next turn. */
  readonly workAtEndOfTurn: (step: Step) => void
}

/**
 * In a turn that takes in very much, an answer that is older than this, in milliseconds, waits for no more of them;
 * nor does any in a turn that begins later than this after the one before it.
 */
const usualMostWaitMs = 1

/** The one of this process is below; tests have some of their own. */
export const createEndOfTurn = (mostWaitMs = usualMostWaitMs): EndOfTurn => {
  let answers: Step[] = []
  let work: Step[] = []
  let isDue = false
  let waitingSince = 0
  let hasBegun = false
  let isLate = false
  let endedAt = 0

  const comeTo = (): void => {
    if (isDue) return
    isDue = true
    setImmediate(end)
  }
  const end = (): void => {
    isDue = false
    sendAll()
    const steps = work
    work = []
    for (const step of steps) step()
    hasBegun = false
    endedAt = performance.now()
  }
  const sendAll = (): void => {
    const ready = answers
    answers = []
    for (const send of ready) send()
  }

  return {
    answerAtEndOfTurn: (send) => {
      const now = performance.now()
      if (!hasBegun) isLate = now - endedAt > mostWaitMs
      hasBegun = true
      if (answers.push(send) === 1) waitingSince = now
      // Also where it is sent: the end of the turn is to come.
      comeTo()
      if (isLate || now - waitingSince >= mostWaitMs) sendAll()
    },
    workAtEndOfTurn: (step) => {
      work.push(step)
      comeTo()
    },
  }
}

export const { answerAtEndOfTurn, workAtEndOfTurn } = createEndOfTurn()
