/** A private text and its replacement. */
export type PrivateText = readonly [text: string, instead: string]

const escapeRegExp = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

/**
 * Replaces private texts, the longest first, and mail addresses in a text for other people. Keeps a webhook
 * path that is the end of a package name, such as `/codex` in `@openai/codex`.
 */
export const replacePrivate = (text: string, words: readonly PrivateText[]): string =>
  words
    .toSorted(([a], [b]) => b.length - a.length)
    .reduce((left, [word, instead]) => left.replaceAll(toPattern(word), () => instead), text)
    .replaceAll(/[\w.+-]+@[\w-]+(\.[\w-]+)+/g, '<mail>')

const toPattern = (word: string): RegExp =>
  new RegExp(`${word.startsWith('/') ? '(?<!(?:^|\\s)@[\\w-]+)' : ''}${escapeRegExp(word)}`, 'g')

/** The events that a stopping daemon waits for. */
export const describeUnfinished = (unfinished: number): string =>
  `when ${unfinished === 1 ? 'an accepted event is' : `${unfinished} accepted events are`} finished`
