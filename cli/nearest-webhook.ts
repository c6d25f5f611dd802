import { nearest, nearestName } from '../shared/text.ts'

/** `did you mean "/webhook/github"?` for `github` or `/gihub` too. */
export const nearestWebhook = (given: string, paths: readonly string[]): string | undefined => {
  const name = nearestName(bare(given), paths.map(bare))
  const path = paths.find((known) => bare(known) === name)
  return path === undefined ? nearest(given, paths) : `did you mean "${path}"?`
}

/** What tells one path from the others. */
const bare = (path: string): string => path.replace(/^\/?(webhook\/)?/, '')
