import type { Status } from '../shared/api.ts'
import { type PrivateText, replacePrivate } from '../shared/privacy.ts'
import { toPlainText } from '../shared/text.ts'

/** The most characters a row shows (contract section 10). */
export const maxLabelLength = 80

/**
 * Makes any text fit to be one row of the menu: one line, no control, direction-changing or
 * invisible characters, at most 80 characters; what does not fit is cut and ends with `…`.
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
 * A text without what could hide or reorder its neighbours: terminal sequences, control and format
 * characters (newline and tab stay), lone surrogates, and piles of combining marks.
 */
export const plainText = (text: string): string =>
  toPlainText(text)
    .replaceAll(/\p{Cf}|\p{Cs}|[\u2028\u2029\u115F\u1160\u3164]/gu, '')
    .replaceAll(/(\p{M}{2})\p{M}+/gu, '$1')

/** Keeps the desktop from taking `_` (Linux) or `&` (Windows) for the mark of an access key. */
export const escapeLabel = (label: string, platform: NodeJS.Platform): string => {
  if (platform === 'linux') return label.replaceAll('_', '__')
  if (platform === 'win32') return label.replaceAll('&', '&&')
  return label
}

/*
 * What has to be done to a text from outside so that a notification service shows it as it is. The
 * body is markup where the service has `body-markup`; the title is plain text by the specification.
 */

/** A title for Linux: some services read markup in it all the same. */
export const titleText = (title: string): string =>
  plainText(title).replaceAll('&', '＆').replaceAll('<', '‹').replaceAll('>', '›')

/** A body for a service that reads markup. Some refuse an empty one. */
export const bodyMarkup = (body: string): string =>
  (plainText(body) || ' ').replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** A body for `notify-send`, which undoes backslashes: `\074` would be a `<` again. */
export const bodyArgument = (body: string): string => bodyMarkup(body).replaceAll('\\', '\\\\')

/** No text that a program takes as an argument is one of its options. */
export const notAnOption = (text: string): string => (text.startsWith('-') ? ` ${text}` : text)

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
