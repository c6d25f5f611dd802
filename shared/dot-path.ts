import { DoorwardError } from './errors.ts'

/** A path into a payload: `pull_request.head.sha`, `commits.0.message`. Empty means the whole payload. */
export type DotPath = readonly string[]

/** Names that lead out of the data into the language; refused when a definition is loaded. */
const forbidden = new Set(['__proto__', 'prototype', 'constructor'])

/** True for a name that a path can have. */
export const isPathName = (name: string): boolean =>
  name !== '' && !name.includes('.') && !forbidden.has(name)

/** Splits `a.b.0` into its names. Throws `config-invalid` for an empty or a forbidden name. */
export const parseDotPath = (text: string): DotPath => {
  if (text === '') throw new DoorwardError('config-invalid', 'the path is empty')
  const names = text.split('.')
  for (const name of names) {
    if (name === '')
      throw new DoorwardError('config-invalid', `path "${text}" has an empty name between its dots`)
    if (forbidden.has(name))
      throw new DoorwardError('config-invalid', `the name "${name}" cannot be used in a path`)
  }
  return names
}

/** True for `event.a.b`: so a path stands in a prompt, where `event` is the payload. */
export const beginsAsInPrompt = (path: DotPath): boolean => path.length > 1 && path[0] === 'event'
