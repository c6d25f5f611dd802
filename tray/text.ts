import type { Status } from '../shared/api/api.ts'
import { type PrivateText, replacePrivate } from '../shared/privacy.ts'
import { toPlainText } from '../shared/text.ts'

/** The most characters a row shows (contract section 10). */
export const maxLabelLength = 80

/**
 * Turns any text into a row of the menu: one line without control, direction-changing or invisible
 * characters, cut to at most 80 characters with a final `…`.
 */
export const toLabel = (text: string, maxLength = maxLabelLength): string => {
  const characters = Array.from(plainText(text).replaceAll(/\s+/gu, ' ').trim())
  if (characters.length <= maxLength) return characters.join('')
  return `${characters
    .slice(0, maxLength - 1)
    .join('')
    .trimEnd()}…`
}

/**
 * Removes what could hide or reorder other text: terminal sequences, control and format characters except
 * newline and tab, lone surrogates, and piles of combining marks.
 */
export const plainText = (text: string): string =>
  toPlainText(text)
    .replaceAll(/\p{Cf}|\p{Cs}|[\u2028\u2029\u115F\u1160\u3164]/gu, '')
    .replaceAll(/(\p{M}{2})\p{M}+/gu, '$1')

/** Escapes `_` (Linux) or `&` (Windows), which would mark an access key. */
export const escapeLabel = (label: string, platform: NodeJS.Platform): string => {
  if (platform === 'linux') return label.replaceAll('_', '__')
  if (platform === 'win32') return label.replaceAll('&', '&&')
  return label
}

/** A title for Linux. The specification makes it plain text, but some services read it as markup. */
export const titleText = (title: string): string =>
  plainText(title).replaceAll('&', '＆').replaceAll('<', '‹').replaceAll('>', '›')

/** A body for a service with `body-markup`. Never empty, since some services refuse that. */
export const bodyMarkup = (body: string): string =>
  (plainText(body) || ' ').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** A body for `notify-send`, which resolves backslashes: `\074` would become `<`. */
export const bodyArgument = (body: string): string => bodyMarkup(body).replaceAll('\\', '\\\\')

/** Keeps an argument from being taken for an option. */
export const notAnOption = (text: string): string => (text.startsWith('-') ? ` ${text}` : text)

/** Private texts, each with its replacement. */
export type Words = readonly PrivateText[]

/**
 * The private texts of a status: account names, the public URL, and the paths of webhooks without a
 * secret, which are secrets themselves.
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

/** Replaces these words, and whatever looks like a mail address, in all texts of a JSON value. */
export const redact = (value: unknown, words: Words): unknown => {
  // Very short words would match everywhere.
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
