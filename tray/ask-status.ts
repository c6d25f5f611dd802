import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import type { Status } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { DoorwardError } from '../shared/errors.ts'
import { readText } from '../shared/client/transport.ts'
import { readStatus } from './read-status.ts'

export type StatusAsker = {
  /** Something has changed: asks, now or as soon as it may. */
  readonly soon: () => void
  /** Rejects with why no status came. */
  readonly failed: Promise<never>
}

export type StatusHearer = {
  readonly onStatus: (status: Status) => void
  /** The answer is late; it may still come. */
  readonly onLate: () => void
}

const pauseMs = 250
const statusLateMs = 3000
const statusLimitMs = 10_000
const maxBytes = 4 * 1024 * 1024

/**
 * Asks for the status, one question at a time and at most four in a second, however much happens; a
 * status that takes long to send and to read is asked for less often, so that it costs a fifth of a
 * processor at the most.
 */
export const askStatus = (
  client: Client,
  signal: AbortSignal,
  { onStatus, onLate }: StatusHearer,
): StatusAsker => {
  let wanted = false
  let busy = false
  let fail: (error: unknown) => void = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  const run = async (): Promise<void> => {
    while (wanted && !signal.aborted) {
      wanted = false
      const askedAt = performance.now()
      const late = setTimeout(onLate, statusLateMs)
      try {
        onStatus(await ask(client, signal))
      } finally {
        clearTimeout(late)
      }
      await delay(Math.max(pauseMs, 4 * (performance.now() - askedAt)), undefined, { signal })
    }
  }
  return {
    soon: () => {
      wanted = true
      if (busy) return
      busy = true
      run()
        .catch(fail)
        .finally(() => {
          busy = false
        })
    },
    failed,
  }
}

/** Throws `daemon-silent` when the whole answer does not come in time, though bytes of it may. */
const ask = async (client: Client, signal: AbortSignal): Promise<Status> => {
  const control = new AbortController()
  const stop = () => control.abort()
  signal.addEventListener('abort', stop)
  const limit = setTimeout(stop, statusLimitMs)
  try {
    const answer = await client.open('/status', { signal: control.signal })
    const status = readStatus(json(await textOf(answer)))
    if (status) return status
  } catch (error) {
    if (signal.aborted || !control.signal.aborted) throw error
    throw new DoorwardError('daemon-silent', 'the daemon does not answer', { cause: error })
  } finally {
    clearTimeout(limit)
    signal.removeEventListener('abort', stop)
  }
  throw unreadable('the daemon answers what the tray cannot read')
}

const textOf = async (answer: IncomingMessage): Promise<string> => {
  try {
    return await readText(answer, maxBytes)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'internal')
      throw unreadable('the daemon answers more than the tray can read')
    throw error
  }
}

const json = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw unreadable('the daemon answered 200 with what is not JSON')
  }
}

const unreadable = (message: string): DoorwardError =>
  new DoorwardError('internal', message, {
    hint: 'doorward daemon restart, then start the tray again',
  })
