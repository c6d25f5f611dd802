import { createInterface } from 'node:readline/promises'
import { DoorwardError } from '../../shared/errors.ts'
import type { Terminal } from './terminal.ts'

type Confirmation = {
  readonly question: string
  /** The message without a terminal to ask on. */
  readonly refusal: string
  /** The message at Ctrl-C. */
  readonly interrupted: string
}

/** Asks for permission. Throws `usage`, with `--yes` as the way out, without a terminal; `interrupted` on Ctrl-C. */
export const confirm = async (
  { question, refusal, interrupted }: Confirmation,
  terminal: Terminal,
): Promise<boolean> => {
  if (!process.stdin.isTTY || !terminal.isInteractive)
    throw new DoorwardError('usage', refusal, { hint: 'say so with --yes' })
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const control = new AbortController()
  lines.once('SIGINT', () => control.abort())
  lines.once('close', () => control.abort())
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: control.signal })
    return /^y(es)?$/i.test(answer.trim())
  } catch (error) {
    process.stderr.write('\n')
    throw new DoorwardError('interrupted', interrupted, { cause: error })
  } finally {
    lines.close()
  }
}
