/*
 * A turn of the loop takes in what has come, request by request. An answer that is written in between wakes its
 * client, which on a busy machine costs as much again as the write; of answers that are written one right after
 * the other the first one does. So they go out together when the turn has taken in what there is, which for one
 * alone is at once, and only then comes what may take long.
 */

type Step = () => void

let answers: Step[] = []
let work: Step[] = []
let isDue = false

/** Sends an answer when the turn ends, in the order of the calls. `send` must not throw. */
export const answerAtEndOfTurn = (send: Step): void => {
  answers.push(send)
  comeTo()
}

/** Does this when the turn ends, after its answers; what is put off meanwhile comes in the next turn. */
export const workAtEndOfTurn = (step: Step): void => {
  work.push(step)
  comeTo()
}

const comeTo = (): void => {
  if (isDue) return
  isDue = true
  setImmediate(end)
}

const end = (): void => {
  const steps = [answers, work]
  answers = []
  work = []
  isDue = false
  for (const row of steps) for (const step of row) step()
}
