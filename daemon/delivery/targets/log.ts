import { fstatSync } from 'node:fs'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainText } from '../../../shared/text.ts'
import type { AgentReply } from '../sender.ts'
import { withDeadline } from '../../../shared/deadline.ts'

/**
 * Prints a reply on the daemon's standard output, without escape sequences. Returns a note when that output is
 * discarded, as for a daemon in the background. Throws `delivery-failed` when the output is closed, or not
 * read for 5 s.
 */
export const writeToStandardOutput = async (reply: AgentReply): Promise<string | undefined> => {
  await write(toBlock(reply))
  return isDiscarded()
    ? 'the daemon runs in the background: its standard output is discarded'
    : undefined
}

/** The block that is printed for a reply. */
export const toBlock = ({ eventId, webhook, receivedAt, text }: AgentReply): string =>
  `\n${receivedAt.toISOString()} ${webhook} ${eventId}\n${toPlainText(text).trimEnd()}\n`

const unreadMs = 5000
const maxUnreadBytes = 4 * 1024 * 1024

/** A reader that has exited or stopped reading (a pager) must neither block the daemon nor fill its memory. */
const write = async (block: string): Promise<void> => {
  // Without a listener, EPIPE would end the daemon.
  if (process.stdout.listenerCount('error') === 0) process.stdout.on('error', () => undefined)
  if (process.stdout.writableLength > maxUnreadBytes) throw toUnreadError()
  const written = new Promise<void>((resolve, reject) => {
    process.stdout.write(block, (error) => (error ? reject(toUnreadError(error)) : resolve()))
  })
  await withDeadline(unreadMs, written, () => {
    throw toUnreadError()
  })
}

const toUnreadError = (cause?: Error) =>
  new DoorwardError('delivery-failed', 'no one reads the standard output', { cause })

const isDiscarded = (): boolean => {
  try {
    const output = fstatSync(1)
    return output.isCharacterDevice() && !process.stdout.isTTY
  } catch {
    return true
  }
}
