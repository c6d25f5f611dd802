import { closest, distance } from 'fastest-levenshtein'

/*
 * Untrusted text (payloads, answers of agents, standard error) can contain escape sequences that repaint a
 * terminal, and characters that change the direction of a line.
 */

// ECMA-48: CSI and OSC sequences, and other escapes of two characters.
const escapes =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|[ -~])/g
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g
const bidirectional = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
/** Matches what the patterns above remove: most texts contain none of it. */
const unusual =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/

/** The text with its line breaks and tabs, without escape, control and direction characters. */
export const toPlainText = (text: string): string =>
  unusual.test(text)
    ? text
        .replaceAll('\r\n', '\n')
        .replace(escapes, '')
        .replace(controls, '')
        .replace(bidirectional, '')
    : text

/** The same, but keeps colours, which doorward's own output has on a terminal. */
export const toPlainTextWithColours = (text: string): string =>
  text
    .split(/(\u001b\[[0-9;]{0,20}m)/)
    .map((part, place) => (place % 2 === 0 ? toPlainText(part) : part))
    .join('')

/** The text on one line, with collapsed white space. */
export const toPlainLine = (text: string): string =>
  toPlainText(text).replaceAll(/\s+/g, ' ').trim()

/**
 * Equivalent JSON that is safe on a terminal: JSON escapes only the first 32 control characters, and for
 * some terminals U+009B starts an escape sequence.
 */
export const toPlainJson = (json: string): string =>
  json.replaceAll(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Characters that take two columns on a terminal (Unicode TR 11: East Asian wide, and emoji). */
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u
const combining = /\p{Mn}/u

/** The columns that a text takes on a terminal. */
export const measureWidth = (text: string): number => {
  let width = 0
  for (const character of text)
    width += combining.test(character) ? 0 : wide.test(character) ? 2 : 1
  return width
}

/** Cuts a text to so many columns; the last of them is then `…`. */
export const cut = (text: string, columns: number): string => {
  if (measureWidth(text) <= columns) return text
  let kept = ''
  let used = 0
  for (const character of text) {
    used += measureWidth(character)
    if (used > columns - 1) break
    kept += character
  }
  return columns > 0 ? `${kept.trimEnd()}…` : ''
}

export const twoDigits = (part: number): string => String(part).padStart(2, '0')

/** A time in the local zone with its offset: `2025-11-20 12:04:05 +01:00`. */
export const formatLocalTime = (iso: string): string => {
  const time = new Date(iso)
  const offset = -time.getTimezoneOffset()
  const local = new Date(time.getTime() + offset * 60_000).toISOString()
  const sign = offset < 0 ? '-' : '+'
  const hours = twoDigits(Math.floor(Math.abs(offset) / 60))
  return `${local.slice(0, 10)} ${local.slice(11, 19)} ${sign}${hours}:${twoDigits(Math.abs(offset) % 60)}`
}

/** A duration in at most two units: `340ms`, `2.5s`, `3m 20s`, `4h 2m`, `3d 5h`. */
export const formatDuration = (ms: number): string => {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  const seconds = ms / 1000
  if (seconds < 10) return `${Math.floor(seconds * 10) / 10}s`
  const units: readonly (readonly [string, number])[] = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ]
  const parts: string[] = []
  let rest = Math.floor(seconds)
  for (const [name, size] of units) {
    if (rest >= size && parts.length < 2) parts.push(`${Math.floor(rest / size)}${name}`)
    else if (parts.length > 0) break
    rest %= size
  }
  return parts.join(' ')
}

/** The bytes of a size in the configuration: `512kb`, `25mb` (powers of 1024). NaN for other text. */
export const parseBytes = (text: string): number => {
  const match = /^(\d+)(b|kb|mb|gb)$/.exec(text)
  const factor = { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 }[match?.[2] ?? '']
  return factor === undefined ? Number.NaN : Number(match?.[1]) * factor
}

/** The milliseconds of a duration in the configuration: `500ms`, `30s`, `10m`, `2h`, `30d`. NaN for other text. */
export const parseMilliseconds = (text: string): number => {
  const match = /^(\d+)(ms|s|m|h|d)$/.exec(text)
  const factor = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[match?.[2] ?? '']
  return factor === undefined ? Number.NaN : Number(match?.[1]) * factor
}

export type Rate = { readonly count: number; readonly perMs: number }

/** A rate in the configuration: `10/s`, `60/min`, `1000/h`. NaN for other text. */
export const parseRate = (text: string): Rate => {
  const match = /^(\d+)\/(s|min|h)$/.exec(text)
  const perMs = { s: 1000, min: 60_000, h: 3_600_000 }[match?.[2] ?? '']
  return { count: Number(match?.[1] ?? Number.NaN), perMs: perMs ?? Number.NaN }
}

/**
 * `did you mean "agent"?` for the nearest known name, if it differs in at most `most` characters, by default
 * a third of the given name.
 */
export const didYouMean = (
  given: string,
  known: readonly string[],
  most?: number,
): string | undefined => {
  const name = findNearest(given, known, most)
  return name === undefined ? undefined : `did you mean "${name}"?`
}

/** The known name that `didYouMean` suggests. */
export const findNearest = (
  given: string,
  known: readonly string[],
  most = Math.max(2, Math.floor(given.length / 3)),
): string | undefined => {
  if (known.length === 0) return undefined
  const name = closest(given, [...known])
  const changes = distance(given, name)
  // Two changes turn any name of two letters into any other.
  return changes <= most && changes < given.length ? name : undefined
}
