import { readFileSync } from 'node:fs'
import { DoorwardError } from '../../shared/errors.ts'
import { packageFolder } from '../../shared/version.ts'

const texts = new Map<string, string>()

/**
 * The text of a file below `assets/`, read once at the start: an update may replace or remove the file while
 * this daemon runs.
 */
export const readAsset = (path: string): string => {
  const known = texts.get(path)
  if (known !== undefined) return known
  const text = readFileSync(new URL(`assets/${path}`, packageFolder), 'utf8')
  texts.set(path, text)
  return text
}

/** The style of a page: the common part and its own. */
export const readStyle = (page: 'callback' | 'bot'): string =>
  readAsset('page/tokens.css') + readAsset('page/base.css') + readAsset(`${page}/page.css`)

/**
 * Returns a `DoorwardError` unchanged; any other thrown value becomes `internal` without its message, since
 * other errors can contain tokens.
 */
export const knownError = (error: unknown): DoorwardError =>
  error instanceof DoorwardError
    ? error
    : new DoorwardError('internal', 'something went wrong inside the daemon', {
        hint: 'doorward daemon logs',
      })
