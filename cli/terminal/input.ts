import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { DoorwardError } from '../../shared/errors.ts'
import { systemReason } from '../../shared/home/home.ts'
import { createInterface as createQuestions } from 'node:readline/promises'
import type { Terminal } from './terminal.ts'

type WantedSecret = {
  /** `client secret`: what it is called in the question and in errors. */
  readonly name: string
  /** A command that gives it. */
  readonly example: string
}

const clientSecret: WantedSecret = {
  name: 'client secret',
  example: 'doorward oauth login github --client-secret-stdin < secret.txt',
}

/**
 * A secret, by default that of an OAuth client, from standard input: all that a pipe or file gives; on a terminal one line, asked
 * for and not shown. Throws `usage` when there is none, `interrupted` at Ctrl-C.
 */
export const readSecret = async ({
  name,
  example,
}: WantedSecret = clientSecret): Promise<string> => {
  const secret = process.stdin.isTTY
    ? await askHidden(`${name} (not shown): `)
    : (await text(process.stdin)).replace(/\r?\n$/, '')
  if (secret.trim() !== '') return secret
  throw new DoorwardError('usage', `standard input has no ${name}`, {
    hint: `for example: ${example}`,
  })
}

const askHidden = async (question: string): Promise<string> => {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  // Only now: from here on the terminal itself shows nothing of what is typed.
  process.stderr.write(question)
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once('line', resolve)
      lines.once('SIGINT', () => reject(new DoorwardError('interrupted', 'interrupted')))
      lines.once('close', () => resolve(''))
    })
  } finally {
    lines.close()
    process.stderr.write('\n')
  }
}

/** The bytes of a file, or with `-` of standard input. Throws `usage` for one that cannot be read. */
export const readInput = async (file: string): Promise<Buffer> => {
  if (file === '-') return buffer(process.stdin)
  try {
    return await readFile(file)
  } catch (error) {
    throw new DoorwardError('usage', `cannot read ${file}: ${systemReason(error)}`, {
      cause: error,
    })
  }
}

/** The same as text. Throws `usage` when it is none. */
export const readTextInput = async (file: string): Promise<string> => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(await readInput(file))
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError('usage', `${file} is not UTF-8 text`, { cause: error })
  }
}

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
  const lines = createQuestions({ input: process.stdin, output: process.stderr })
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
