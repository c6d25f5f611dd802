import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { DoorwardError } from '../shared/errors.ts'

/**
 * The client secret from standard input: all that a pipe or file gives; on a terminal one line, asked
 * for and not shown. Throws `usage` when there is none, `interrupted` at Ctrl-C.
 */
export const readSecret = async (): Promise<string> => {
  const secret = process.stdin.isTTY
    ? await askHidden('client secret (not shown): ')
    : (await text(process.stdin)).replace(/\r?\n$/, '')
  if (secret.trim() !== '') return secret
  throw new DoorwardError('usage', 'standard input has no client secret', {
    hint: 'for example: doorward oauth login github --client-secret-stdin < secret.txt',
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
