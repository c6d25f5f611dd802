import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'

const homeCheckMs = 30_000

/**
 * Looks every half minute whether the home still has our lock, and calls `gone` when it has not twice in a
 * row: somebody has removed the home. A daemon without one can keep nothing, holds the port of the one to
 * come, and no command finds it any more. Keeps no process alive.
 */
export const watchForHomeGone = ({ run }: Home, gone: () => void): void => {
  let wasMissing = false
  const look = async (): Promise<void> => {
    const isMissing = await stat(join(run, 'daemon.lock')).then(
      () => false,
      // A disk that does not answer is another matter.
      (error: unknown) => ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? ''),
    )
    if (isMissing && wasMissing) {
      clearInterval(timer)
      gone()
    }
    wasMissing = isMissing
  }
  const timer = setInterval(() => void look(), homeCheckMs).unref()
}
