import { writeSync } from 'node:fs'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import { endQuietlyWhenClosed } from './end-quietly.ts'

/** Without `process.stdout`, which takes a tenth of the time of so short a command. */
export const printAtOnce = (text: string): void => {
  try {
    writeSync(1, text)
  } catch (error) {
    // A pipe may be full for now.
    if (systemCode(error) === 'EAGAIN') {
      endQuietlyWhenClosed()
      process.stdout.write(text)
    } else if (systemCode(error) !== 'EPIPE')
      throw new DoorwardError('internal', `cannot write to standard output (${systemCode(error)})`)
  }
}
