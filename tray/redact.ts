import type { Status } from '../shared/api.ts'
import { type PrivateText, replacePrivate } from '../shared/privacy.ts'

/** What stands for each text that is nobody else's business. */
export type Words = readonly PrivateText[]

/**
 * The texts of a status that strangers should not read: who is logged in, where the daemon is reached
 * from outside, and the paths of webhooks that take unsigned deliveries, which are secrets themselves.
 */
export const privateWords = (status: Status): Words => [
  ...[...status.providers, ...status.tokens].flatMap(({ account }) =>
    account ? [[account.name, '<account>'] as const, [account.id, '<account>'] as const] : [],
  ),
  ...(status.publicUrl === undefined ? [] : [[status.publicUrl, '<public url>'] as const]),
  ...status.webhooks
    .filter(({ secret }) => secret === 'none')
    .map(({ path }) => [path, '<unsigned webhook>'] as const),
]

/** Every text of a JSON value with those words, and whatever looks like a mail address, replaced. */
export const redact = (value: unknown, words: Words): unknown => {
  // What is very short would be found everywhere.
  const longer = words.filter(([text]) => text.length > 2)
  const clean = (text: string): string => replacePrivate(text, longer)
  const walk = (part: unknown): unknown => {
    if (typeof part === 'string') return clean(part)
    if (Array.isArray(part)) return part.map(walk)
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([key, inner]) => [clean(key), walk(inner)]))
  }
  return walk(value)
}
