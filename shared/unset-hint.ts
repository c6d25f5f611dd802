import { nearest } from './nearest.ts'

/**
 * What to do about variables that are unset, and which one of a nearly equal name may be meant. `used` are
 * the variables that the configuration names elsewhere: those have a meaning of their own.
 */
export const unsetHint = (
  names: readonly string[],
  env: NodeJS.ProcessEnv,
  used: readonly string[] = [],
): string => {
  const [name = '', ...more] = names
  const free = Object.keys(env).filter((known) => !used.includes(known))
  // Short names are all alike, and long ones have the same ends: GITHUB_WEBHOOK_SECRET, STRIPE_….
  const meant = more.length > 0 || name.length < 8 ? undefined : nearest(name, free, 2)
  const set = `set ${names.join(', ')} in .env: doorward config edit env`
  return meant === undefined ? set : `${set}; ${meant}`
}
