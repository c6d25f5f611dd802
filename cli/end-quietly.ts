import { systemCode } from '../shared/errors.ts'
import { exitFailed } from './exit-code.ts'

/** A reader that has seen enough (`| head -1`) is no failure. */
export const endQuietlyWhenClosed = (): void => {
  if (process.stdout.listenerCount('error') > 0) return
  process.stdout.on('error', (error) => {
    if (systemCode(error) === 'EPIPE') process.exit()
    // As on a full disk: what was printed is not whole, and nothing more can be.
    process.stderr.write(`doorward: cannot write to standard output (${systemCode(error)})\n`)
    process.exit(exitFailed)
  })
  process.stderr.on('error', () => undefined)
}
