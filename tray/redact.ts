import type { Status } from '../shared/api.ts'

/** What stands for each text that is nobody else's business. */
export type Words = readonly (readonly [text: string, instead: string])[]

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
  const ordered = words
    // What is very short would be found everywhere.
    .filter(([text]) => text.length > 2)
    .toSorted(([a], [b]) => b.length - a.length)
  const clean = (text: string): string =>
    ordered
      .reduce((left, [word, instead]) => left.replaceAll(word, instead), text)
      .replaceAll(/[\w.+-]+@[\w-]+(\.[\w-]+)+/g, '<mail>')
  const walk = (part: unknown): unknown => {
    if (typeof part === 'string') return clean(part)
    if (Array.isArray(part)) return part.map(walk)
    if (typeof part !== 'object' || part === null) return part
    return Object.fromEntries(Object.entries(part).map(([key, inner]) => [clean(key), walk(inner)]))
  }
  return walk(value)
}
