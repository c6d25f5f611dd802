import type { IncomingMessage } from 'node:http'
import { DoorwardError } from '../../shared/errors.ts'
import { type ByteBudget, type ByteCollector, createByteCollector } from '../util/byte-budget.ts'

/** The time for a body, in milliseconds; headers have their own limit. */
const defaultBodyTimeoutMs = 15_000

export type ReceiveLimits = {
  /** The value of Content-Length; NaN without one. */
  readonly declared: number
  readonly maxBodyBytes: number
  readonly budget: ByteBudget
  /** Default 15 s. */
  readonly bodyTimeoutMs?: number
}

/** Raw bytes, counted in the budget until `release` is called. */
export type ReceivedBody = {
  readonly bytes: Buffer
  readonly release: () => void
}

/**
 * First stage: the raw body as it was sent. Throws `body-too-large` before all of it is read, `queue-full`
 * when the byte budget is used up, `body-timeout`, and `body-aborted` when the sender disconnects; nothing
 * remains counted then.
 */
export const receive = async (
  request: IncomingMessage,
  { declared, maxBodyBytes, budget, bodyTimeoutMs = defaultBodyTimeoutMs }: ReceiveLimits,
): Promise<ReceivedBody> => {
  if (declared > maxBodyBytes) throw tooLarge(maxBodyBytes)

  let whole: Buffer | undefined
  let pieces: ByteCollector | undefined
  let counted = 0
  const release = () => {
    budget.giveBack(counted)
    counted = 0
    // The request, which lives until it is answered, refers to both.
    whole = pieces = undefined
  }
  try {
    await new Promise<void>((resolve, reject) => {
      let isOver = false
      const timer = setTimeout(() => end(() => tooSlow(bodyTimeoutMs)), bodyTimeoutMs)
      const end = (why?: () => DoorwardError) => {
        if (isOver) return
        isOver = true
        clearTimeout(timer)
        if (why) reject(why())
        else resolve()
      }
      request.on('data', (chunk: Buffer) => {
        if (counted + chunk.length > maxBodyBytes) return end(() => tooLarge(maxBodyBytes))
        if (!budget.take(chunk.length)) return end(noRoom)
        counted += chunk.length
        // Most bodies arrive in one piece, which is used within this turn and need not be copied.
        if (chunk.length === declared) whole = chunk
        else (pieces ??= createByteCollector(declared)).add(chunk)
      })
      // Only the first of these counts.
      request.on('end', () => end())
      const abort = () => end(aborted)
      request.on('error', abort)
      request.on('close', abort)
    })
  } catch (error) {
    request.removeAllListeners('data')
    release()
    throw error
  }
  return { bytes: whole ?? pieces?.bytes() ?? Buffer.alloc(0), release }
}

/** The same for bytes that are here already. Throws `body-too-large`, `queue-full`. */
export const holdBytes = (
  bytes: Buffer,
  { maxBodyBytes, budget }: Pick<ReceiveLimits, 'maxBodyBytes' | 'budget'>,
): ReceivedBody => {
  if (bytes.length > maxBodyBytes) throw tooLarge(maxBodyBytes)
  if (!budget.take(bytes.length)) throw noRoom()
  let counted = bytes.length
  const release = () => {
    budget.giveBack(counted)
    counted = 0
  }
  return { bytes, release }
}

const tooSlow = (limitMs: number) =>
  new DoorwardError('body-timeout', `the body did not arrive in ${limitMs / 1000} s`)

const aborted = () =>
  new DoorwardError('body-aborted', 'the sender disconnected before the body was complete')

const tooLarge = (limit: number) =>
  new DoorwardError('body-too-large', `the body is larger than ${limit} bytes`, {
    hint: 'the owner can raise server.body_limit',
  })

const noRoom = () =>
  new DoorwardError('queue-full', 'queue is full', {
    localDetail: 'queue.max_bytes is used up by bodies being read and events waiting',
  })
