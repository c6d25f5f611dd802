import { styleText } from 'node:util'
import { asTyped } from './as-typed.ts'
import { asciiMarks, takesUtf8 } from './ascii-marks.ts'
import { plainJson } from '../shared/plain-text.ts'

export type Style = Parameters<typeof styleText>[0]

/** Where a command writes: the answer to standard output, everything else to standard error. */
export type Terminal = {
  readonly json: boolean
  /** Columns to keep within; undefined when standard output is no terminal. */
  readonly columns: number | undefined
  readonly isInteractive: boolean
  /** A line (or several) of the answer. */
  readonly print: (text: string) => void
  /** The answer as one JSON document; indented for a person. */
  readonly printJson: (value: unknown) => void
  /** One line of a stream of JSON documents. */
  readonly printJsonLine: (value: unknown) => void
  /** Progress, on standard error; silent with --quiet and --json. */
  readonly say: (text: string) => void
  /** What must be seen, on standard error. */
  readonly warn: (text: string) => void
  /** Colours a text of the answer, where colour is wanted. */
  readonly paint: (style: Style, text: string) => string
  readonly paintError: (style: Style, text: string) => string
}

export type TerminalOptions = {
  readonly json: boolean
  readonly quiet: boolean
  readonly color: boolean
}

/** The process's own terminal, under the global options and `NO_COLOR` (no-color.org). */
export const openTerminal = ({ json, quiet, color }: TerminalOptions): Terminal => {
  const wantsColor = color && !process.env['NO_COLOR'] && process.env['TERM'] !== 'dumb'
  const painter = (isTty: boolean) => (style: Style, text: string) =>
    wantsColor && isTty ? styleText(style, text, { validateStream: false }) : text
  // What a pipe gets may be an agent's answer, and stays as it is.
  const shown = (isTty: boolean, text: string) =>
    isTty && !takesUtf8(process.env) ? asciiMarks(text) : text
  const write = (text: string) => void process.stdout.write(`${text}\n`)
  const writeError = (text: string) =>
    void process.stderr.write(`${shown(process.stderr.isTTY, text)}\n`)
  return {
    json,
    columns: process.stdout.isTTY ? process.stdout.columns || 80 : undefined,
    isInteractive: process.stderr.isTTY && !json && !quiet,
    print: (text) => write(shown(process.stdout.isTTY, text)),
    printJson: (value) => write(plainJson(JSON.stringify(value, null, 2))),
    printJsonLine: (value) => write(plainJson(JSON.stringify(value))),
    say: (text) => {
      if (!quiet && !json) writeError(asTyped(text))
    },
    warn: writeError,
    paint: painter(process.stdout.isTTY),
    paintError: painter(process.stderr.isTTY),
  }
}
