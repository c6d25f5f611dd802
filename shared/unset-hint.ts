import { nearest } from './nearest.ts'

/** What to do about variables that are unset, and which one of a nearly equal name may be meant. */
export const unsetHint = (names: readonly string[], env: NodeJS.ProcessEnv): string => {
  const [name = '', ...more] = names
  // Short names are all alike.
  const meant = more.length > 0 || name.length < 8 ? undefined : nearest(name, Object.keys(env))
  const set = `set ${names.join(', ')} in .env: doorward config edit env`
  return meant === undefined ? set : `${set}; ${meant}`
}
