import { readFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { buffer, text } from 'node:stream/consumers'
import { DoorwardError } from '../../shared/errors.ts'
import { systemReason } from '../../shared/home/home.ts'

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
