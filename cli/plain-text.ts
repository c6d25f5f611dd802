/*
 * What came from outside (a payload's title, an agent's answer, a provider's error) must not move the
 * cursor, colour the screen, set a title or reverse the reading order of what a person then trusts.
 */

/** ANSI escape sequences (ECMA-48): CSI, the string kinds up to their end, and two-character ones. */
const escapes =
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*[0-~]?/g

/** C0 but tab and newline, DEL, C1, bidirectional marks (Unicode TR 9), zero-width and line separators. */
const invisible =
  /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g

/** A text of several lines without escape sequences, control and bidirectional characters. */
export const plainText = (text: string): string =>
  text.replaceAll(/\r\n?/g, '\n').replaceAll(escapes, '').replaceAll(invisible, '')

/** The same on one line: line ends and tabs become spaces. */
export const plainLine = (text: string): string => plainText(text).replaceAll(/[\s]+/g, ' ').trim()
