import { readFile } from 'node:fs/promises'
import { buffer } from 'node:stream/consumers'
import { DoorwardError } from '../shared/errors.ts'
import { systemReason } from '../shared/home/home.ts'

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
