import { fstatSync } from 'node:fs'
import { DoorwardError } from '../../shared/errors.ts'
import { plainLines } from '../../shared/plain-text.ts'
import type { Answered } from './deliver.ts'

/**
 * Prints an answer on the daemon's standard output, without escape sequences. Says so when nobody can
 * see it there, as for a daemon that was started in the background. Throws `delivery-failed` when the
 * output is closed.
 */
export const writeToStandardOutput = async ({
  eventId,
  webhook,
  receivedAt,
  text,
}: Answered): Promise<string | undefined> => {
  const block = `\n${receivedAt.toISOString()} ${webhook} ${eventId}\n${plainLines(text).trimEnd()}\n`
  await write(block)
  return isThrownAway()
    ? 'the daemon runs in the background: its standard output goes nowhere'
    : undefined
}

const write = async (block: string): Promise<void> => {
  // Without a listener the end of whoever read our output would be the end of the daemon.
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined)
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(block, (error) => {
      if (!error) resolve()
      else
        reject(
          new DoorwardError('delivery-failed', 'nobody reads the standard output any more', {
            cause: error,
          }),
        )
    })
  })
}

const isThrownAway = (): boolean => {
  try {
    const output = fstatSync(1)
    return output.isCharacterDevice() && !process.stdout.isTTY
  } catch {
    return true
  }
}
