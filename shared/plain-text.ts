/*
 * Text from outside (payloads, agents' answers, standard error) can hold escape sequences that
 * repaint a terminal, and characters that turn a line around.
 */

// ECMA-48: CSI and OSC sequences, and other escapes of two characters.
const escapes =
  /\u001b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\u0007\u001b\n]*(?:\u0007|\u001b\\)?|[ -~])/g
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g
const bidirectional = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g
/** One look for all that the others change: nearly no text has any of it. */
const unusual =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/

/** The text with its line breaks and tabs, without escape, control and direction characters. */
export const plainLines = (text: string): string =>
  unusual.test(text)
    ? text
        .replaceAll('\r\n', '\n')
        .replace(escapes, '')
        .replace(controls, '')
        .replace(bidirectional, '')
    : text

/** The same but for colours, which doorward's own words have on a terminal. */
export const plainButColours = (text: string): string =>
  text
    .split(/(\u001b\[[0-9;]{0,20}m)/)
    .map((part, place) => (place % 2 === 0 ? plainLines(part) : part))
    .join('')

/** The text on one line, white space folded. */
export const plainLine = (text: string): string => plainLines(text).replaceAll(/\s+/g, ' ').trim()

/**
 * JSON text that a terminal can show, and that means the same: JSON escapes the first 32 control
 * characters only, and some terminals take U+009B for the start of an escape sequence.
 */
export const plainJson = (json: string): string =>
  json.replaceAll(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
