/*
 * A turn of the loop takes in what has come, request by request. An answer that is written in between wakes its
 * client, which on a busy machine costs as much again as the write; of answers that are written one right after
 * the other the first one does. So they go out together when the turn has taken in what there is, which for one
 * alone is at once, and only then comes what may take long.
 */

type Step = () => void

/** For so long, in milliseconds, an answer waits for others in a turn that takes in very much. */
const mostWaitMs = 1

let answers: Step[] = []
let work: Step[] = []
let isDue = false
let waitingSince = 0

/** Sends an answer when the turn ends, or after 1 ms of it, in the order of the calls. `send` must not throw. */
export const answerAtEndOfTurn = (send: Step): void => {
  const now = performance.now()
  if (answers.push(send) === 1) waitingSince = now
  if (now - waitingSince < mostWaitMs) comeTo()
  else sendAll()
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
  isDue = false
  sendAll()
  const steps = work
  work = []
  for (const step of steps) step()
}

const sendAll = (): void => {
  const ready = answers
  answers = []
  for (const send of ready) send()
}
