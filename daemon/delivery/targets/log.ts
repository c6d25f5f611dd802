import { fstatSync } from 'node:fs'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainText } from '../../../shared/text.ts'
import type { AgentReply } from '../sender.ts'

/**
 * Prints an answer on the daemon's standard output, without escape sequences. Says so when nobody can
 * see it there, as for a daemon that was started in the background. Throws `delivery-failed` when the
 * output is closed, or not read for 5 s.
 */
export const writeToStandardOutput = async ({
  eventId,
  webhook,
  receivedAt,
  text,
}: AgentReply): Promise<string | undefined> => {
  const block = `\n${receivedAt.toISOString()} ${webhook} ${eventId}\n${toPlainText(text).trimEnd()}\n`
  await write(block)
  return isThrownAway()
    ? 'the daemon runs in the background: its standard output goes nowhere'
    : undefined
}

const unreadMs = 5000
const maxUnreadBytes = 4 * 1024 * 1024

/** A reader that has gone, or that has stopped reading (a pager), must hold neither us nor our memory. */
const write = async (block: string): Promise<void> => {
  // Without a listener the end of whoever read our output would be the end of the daemon.
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined)
  if (process.stdout.writableLength > maxUnreadBytes) throw notRead()
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(notRead()), unreadMs)
    process.stdout.write(block, (error) => {
      clearTimeout(timer)
      if (error) reject(notRead(error))
      else resolve()
    })
  })
}

const notRead = (cause?: Error) =>
  new DoorwardError('delivery-failed', 'nobody reads the standard output any more', { cause })

const isThrownAway = (): boolean => {
  try {
    const output = fstatSync(1)
    return output.isCharacterDevice() && !process.stdout.isTTY
  } catch {
    return true
  }
}
