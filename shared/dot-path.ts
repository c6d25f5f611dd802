import { DoorwardError } from './errors.ts'

/** A path into a payload: `pull_request.head.sha`, `commits.0.message`. Empty means the whole payload. */
export type DotPath = readonly string[]

/** True for a name that a path can have. */
export const isPathName = (name: string): boolean => name !== '' && !name.includes('.')

/** Splits `a.b.0` into its names. Throws `config-invalid` for an empty name. */
export const parseDotPath = (text: string): DotPath => {
  if (text === '') throw new DoorwardError('config-invalid', 'the path is empty')
  const names = text.split('.')
  if (names.includes(''))
    throw new DoorwardError('config-invalid', `path "${text}" has an empty name between its dots`)
  return names
}

/** True for `event.a.b`: so a path stands in a prompt, where `event` is the payload. */
export const beginsAsInPrompt = (path: DotPath): boolean => path.length > 1 && path[0] === 'event'
