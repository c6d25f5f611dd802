import { fstatSync } from 'node:fs'
import { plainLines } from '../../shared/plain-text.ts'
import type { Answered } from './deliver.ts'

/**
 * Prints an answer on the daemon's standard output, without escape sequences. Says so when nobody can
 * see it there, as for a daemon that was started in the background.
 */
export const writeToStandardOutput = async ({
  eventId,
  webhook,
  receivedAt,
  text,
}: Answered): Promise<string | undefined> => {
  const block = `\n${receivedAt.toISOString()} ${webhook} ${eventId}\n${plainLines(text).trimEnd()}\n`
  await new Promise<void>((resolve) => process.stdout.write(block, () => resolve()))
  return isThrownAway()
    ? 'the daemon runs in the background: its standard output goes nowhere'
    : undefined
}

const isThrownAway = (): boolean => {
  try {
    const output = fstatSync(1)
    return output.isCharacterDevice() && !process.stdout.isTTY
  } catch {
    return true
  }
}
