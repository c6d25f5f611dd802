/** A text, and what stands in its place. */
export type PrivateText = readonly [text: string, instead: string]

const escaped = (text: string): string => text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, '\\$&')

/**
 * Takes private texts, and whatever looks like a mail address, out of a text that goes to others; the
 * longest first. The path of a webhook may also be the end of a package's name, as `/codex` of
 * `@openai/codex`, in a command that must stay right.
 */
export const replacePrivate = (text: string, words: readonly PrivateText[]): string =>
  words
    .toSorted(([a], [b]) => b.length - a.length)
    .reduce((left, [word, instead]) => left.replaceAll(toPattern(word), () => instead), text)
    .replaceAll(/[\w.+-]+@[\w-]+(\.[\w-]+)+/g, '<mail>')

const toPattern = (word: string): RegExp =>
  new RegExp(`${word.startsWith('/') ? '(?<!(?:^|\\s)@[\\w-]+)' : ''}${escaped(word)}`, 'g')

/** What a daemon that is about to end waits for, in words. */
export const describeUnfinished = (unfinished: number): string =>
  `when ${unfinished === 1 ? 'an accepted event is' : `${unfinished} accepted events are`} finished`
