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
  refuseWithoutTerminal(terminal, refusal, 'say so with --yes')
  return /^y(es)?$/i.test(await ask(`${question} [y/N] `, interrupted))
}

type Choice = {
  readonly question: string
  readonly values: readonly string[]
  /** The error without a terminal to ask on. */
  readonly refusal: string
  readonly hint: string
}

/** Asks for one of some values. Throws `usage` without a terminal, or for another answer; `interrupted` on Ctrl-C. */
export const choose = async (
  { question, values, refusal, hint }: Choice,
  terminal: Terminal,
): Promise<string> => {
  refuseWithoutTerminal(terminal, refusal, hint)
  const answer = await ask(`${question} (${values.join(', ')}) `, 'nothing was written')
  if (values.includes(answer)) return answer
  throw new DoorwardError('usage', `${JSON.stringify(answer)} is none of them`, { hint })
}

const refuseWithoutTerminal = (terminal: Terminal, refusal: string, hint: string): void => {
  if (!process.stdin.isTTY || !terminal.isInteractive)
    throw new DoorwardError('usage', refusal, { hint })
}

const ask = async (question: string, interrupted: string): Promise<string> => {
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const control = new AbortController()
  lines.once('SIGINT', () => control.abort())
  lines.once('close', () => control.abort())
  try {
    return (await lines.question(question, { signal: control.signal })).trim()
  } catch (error) {
    process.stderr.write('\n')
    throw new DoorwardError('interrupted', interrupted, { cause: error })
  } finally {
    lines.close()
  }
}
