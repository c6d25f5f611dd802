import { isatty } from 'node:tty'
import { styleText } from 'node:util'
import { toPlainTextWithColours, toPlainJson, toPlainText } from '../../shared/text.ts'
import { asciiJson, asciiText, exitOnEpipe, takesUtf8 } from './output.ts'
import { wrapped } from './wrap.ts'

export type Style = Parameters<typeof styleText>[0]

/** Where a command writes: the answer to standard output, everything else to standard error. */
export type Terminal = {
  readonly json: boolean
  /** Columns to keep within; undefined when standard output is no terminal. */
  readonly columns: number | undefined
  /** The rows of the window of standard output. */
  readonly rows: number
  /** Standard error is a terminal on which a person waits: a spinner may turn there. */
  readonly isInteractive: boolean
  /** Lines of standard output can be drawn again. */
  readonly isLive: boolean
  /** Only ASCII can be shown, by the locale. */
  readonly isAscii: boolean
  /** A line (or several) of the answer. */
  readonly print: (text: string) => void
  /** Text of the answer as it stands, with what moves the cursor. */
  readonly draw: (text: string) => void
  /** The answer as one JSON document; indented for a person. */
  readonly printJson: (value: unknown) => void
  /** One line of a stream of JSON documents. */
  readonly printJsonLine: (value: unknown) => void
  /** Progress, on standard error; silent with --quiet and --json. */
  readonly say: (text: string) => void
  /** Text that must be seen, on standard error. */
  readonly warn: (text: string) => void
  /** Colours a text of the answer, where colour is wanted. */
  readonly paint: (style: Style, text: string) => string
  readonly paintError: (style: Style, text: string) => string
}

type TerminalOptions = {
  readonly json: boolean
  readonly quiet: boolean
  readonly color: boolean
}

/**
 * The process's own terminal, under the global options and `NO_COLOR` (no-color.org). The streams are made
 * when something is written: that takes a tenth of the time of a short command.
 */
export const openTerminal = ({ json, quiet, color }: TerminalOptions): Terminal => {
  const { env } = process
  const [isAnswerTty, isAsideTty] = [isatty(1), isatty(2)]
  const wantsColor = color && !env['NO_COLOR'] && env['TERM'] !== 'dumb'
  const painter = (isTty: boolean) => (style: Style, text: string) =>
    wantsColor && isTty ? styleText(style, text, { validateStream: false }) : text
  const isAscii = !takesUtf8(env)
  // Whatever a command has overlooked: paths, names and numbers can come from outside too.
  const harmless = (isTty: boolean) => (wantsColor && isTty ? toPlainTextWithColours : toPlainText)
  const [answer, aside] = [harmless(isAnswerTty), harmless(isAsideTty)]
  // What goes into a file or to another program stays as it is.
  const shown = (text: string) => answer(isAscii && isAnswerTty ? asciiText(text) : text)
  const write = (text: string) => void process.stdout.write(`${text}\n`)
  const writeJson = (text: string) =>
    write(isAscii && isAnswerTty ? asciiJson(toPlainJson(text)) : toPlainJson(text))
  // A log of a build is a terminal at times, on which nobody looks at what moves.
  const canMove = env['TERM'] !== 'dumb' && !('CI' in env)
  return {
    json,
    get columns() {
      // A cut line ends with one column, which is three in ASCII.
      return isAnswerTty ? getColumns(process.stdout) - (isAscii ? 2 : 0) : undefined
    },
    get rows() {
      return process.stdout.rows || 24
    },
    isInteractive: isAsideTty && canMove && !json && !quiet,
    isLive: isAnswerTty && canMove && !json,
    isAscii,
    print: (text) => write(shown(text)),
    // Moves the cursor too; what it draws has been made harmless line by line.
    draw: (text) => void process.stdout.write(isAscii ? asciiText(text) : text),
    printJson: (value) => writeJson(JSON.stringify(value, null, 2)),
    printJsonLine: (value) => writeJson(JSON.stringify(value)),
    say: (text) => {
      if (!quiet && !json) writeError(aside(asInvoked(text)))
    },
    warn: (text) => writeError(aside(text)),
    paint: painter(isAnswerTty),
    paintError: painter(isAsideTty),
  }
}

/** Writes lines to standard error: on a terminal between words, and in what it can show. */
export const writeError = (text: string): void => {
  exitOnEpipe()
  const { stderr, env } = process
  const lines = stderr.isTTY ? wrapped(text, getColumns(stderr)) : text
  stderr.write(`${stderr.isTTY && !takesUtf8(env) ? asciiText(lines) : lines}\n`)
}

/** A terminal that does not tell how wide it is says 0. */
const getColumns = ({ columns }: NodeJS.WriteStream): number => columns || 80

/**
 * Hints name commands as `doorward …`. For a person who runs it by npx that would be "command not
 * found", so they are shown the way they were typed.
 */
export const asInvoked = (text: string, env: NodeJS.ProcessEnv = process.env): string =>
  // npm names its own command to what it runs: https://docs.npmjs.com/cli/using-npm/scripts
  env['npm_command'] === 'exec'
    ? text.replace(/(?<![\w/.-])doorward (?=[a-z])/g, 'npx doorward ')
    : text
