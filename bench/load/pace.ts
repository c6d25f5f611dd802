import { setTimeout as wait } from 'node:timers/promises'
import type { Answer, Sender } from './sender.ts'

/**
 * Posts at a fixed pace, however long the responses take. Each time counts from the moment the post was due,
 * so that a server that is blocked does not look faster.
 */
export const postAtPace = async (
  { post }: Sender,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<Answer[]> => {
  const total = perSecond * seconds
  const start = performance.now()
  const answers: Promise<Answer>[] = []
  while (answers.length < total) {
    const due = start + (answers.length * 1000) / perSecond
    const late = performance.now() - due
    if (late < 0) await wait(-late)
    else answers.push(post().then(({ status, ms }) => ({ status, ms: ms + late })))
  }
  return Promise.all(answers)
}

/** Sends `posts` posts from `callers` callers, each of which waits for its responses. */
export const postAtOnce = async (
  { post }: Sender,
  { posts, callers }: { readonly posts: number; readonly callers: number },
): Promise<Answer[]> => {
  const answers: Answer[] = []
  let left = posts
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (left > 0) {
        left -= 1
        answers.push(await post())
      }
    }),
  )
  return answers
}
