import { plainLines } from '../shared/text.ts'

/** The most characters a row shows (contract section 10). */
export const maxLabelLength = 80

/**
 * Makes any text fit to be one row of the menu: one line, no control, direction-changing or
 * invisible characters, at most 80 characters; what does not fit is cut and ends with `…`.
 */
export const labelOf = (text: string, maxLength = maxLabelLength): string => {
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
  plainLines(text)
    .replaceAll(/\p{Cf}|\p{Cs}|[\u2028\u2029\u115F\u1160\u3164]/gu, '')
    .replaceAll(/(\p{M}{2})\p{M}+/gu, '$1')

/** Keeps the desktop from taking `_` (Linux) or `&` (Windows) for the mark of an access key. */
export const escapeLabel = (label: string, platform: NodeJS.Platform): string => {
  if (platform === 'linux') return label.replaceAll('_', '__')
  if (platform === 'win32') return label.replaceAll('&', '&&')
  return label
}
