import { readFileSync } from 'node:fs'
import { DoorwardError } from '../../shared/errors.ts'
import { packageFolder } from '../../shared/version.ts'

const texts = new Map<string, string>()

/**
 * The text of a file below `assets/`, as it was when it was first asked for, which is at the start: an update
 * may put another there, or take it away, while this daemon runs and has its parts made anew.
 */
export const readAsset = (path: string): string => {
  const known = texts.get(path)
  if (known !== undefined) return known
  const text = readFileSync(new URL(`assets/${path}`, packageFolder), 'utf8')
  texts.set(path, text)
  return text
}

/** The style of a page: what all of them have in common, and its own. */
export const readStyle = (page: 'callback' | 'event'): string =>
  readAsset('page/base.css') + readAsset(`${page}/page.css`)

/**
 * An error of ours as it is; any other thrown value becomes `internal` without a word of it, since
 * foreign errors can hold tokens.
 */
export const knownError = (error: unknown): DoorwardError =>
  error instanceof DoorwardError
    ? error
    : new DoorwardError('internal', 'something went wrong inside the daemon', {
        hint: 'doorward daemon logs',
      })
