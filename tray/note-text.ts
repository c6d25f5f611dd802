import { plainText } from './label.ts'

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
