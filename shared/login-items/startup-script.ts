import { type Marker, markerLine } from './marker.ts'

/**
 * A script for the Startup folder of Windows that starts a program without a window. Windows Script Host
 * reads UTF-16 by its byte order mark, so that any name survives.
 */
export const startupScript = (marker: Marker, argv: readonly [string, ...string[]]): string => {
  const words = argv.map(commandWord)
  // Run expands %NAME%, once and without an escape: a word with a per cent sign goes by a variable.
  const byVariable = words.map((word, index) =>
    word.includes('%') ? variableOf(index) : undefined,
  )
  return [
    `\uFEFF' ${markerLine(marker)}`,
    'Set shell = CreateObject("WScript.Shell")',
    ...words.flatMap((word, index) => {
      const name = byVariable[index]
      return name ? [`shell.Environment("PROCESS")(${literal(name)}) = ${literal(word)}`] : []
    }),
    `shell.Run ${literal(words.map((word, index) => (byVariable[index] ? `%${byVariable[index]}%` : word)).join(' '))}, 0, False`,
    '',
  ].join('\r\n')
}

const variableOf = (index: number): string => `DOORWARD_WORD_${index}`

/** A word as CommandLineToArgvW reads it: a backslash counts only before a quote. */
const commandWord = (text: string): string =>
  `"${text.replaceAll(/(\\*)"/g, String.raw`$1$1\"`).replace(/\\+$/, '$&$&')}"`

const literal = (text: string): string => `"${text.replaceAll('"', '""')}"`
