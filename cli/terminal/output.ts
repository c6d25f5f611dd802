import { systemCode } from '../../shared/errors.ts'
import { exitFailed } from '../exit-code.ts'

/** A reader that has seen enough (`| head -1`) is no failure. */
export const exitOnEpipe = (): void => {
  if (process.stdout.listenerCount('error') > 0) return
  process.stdout.on('error', (error) => {
    if (systemCode(error) === 'EPIPE') process.exit()
    // As on a full disk: what was printed is not whole, and nothing more can be.
    process.stderr.write(`doorward: cannot write to standard output (${systemCode(error)})\n`)
    process.exit(exitFailed)
  })
  process.stderr.on('error', () => undefined)
}

/** What our own marks become where a terminal shows nothing but ASCII; each is as wide as before, but `…`. */
const marks: Readonly<Record<string, string>> = {
  '✓': '+',
  '✗': 'x',
  '●': '*',
  '○': 'o',
  '·': '-',
  '█': '#',
  '▏': '|',
  '…': '...',
  '–': '-',
  '—': '-',
  '→': '>',
  '“': '"',
  '”': '"',
  '‘': "'",
  '’': "'",
}
const anyMark = new RegExp(`[${Object.keys(marks).join('')}]`, 'g')

/**
 * True where a terminal takes UTF-8, by the first variable that says something (POSIX, 8.2). Where none
 * does, as in a container, nearly every terminal does today.
 */
export const takesUtf8 = (
  env: NodeJS.ProcessEnv,
  platform: NodeJS.Platform = process.platform,
): boolean => {
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find(Boolean)
  return platform === 'win32' || locale === undefined || /utf-?8/i.test(locale)
}

/**
 * A text in ASCII: marks by others, letters without their accents, the rest `?`. Where a terminal takes
 * each byte for a character, bytes of UTF-8 are control characters to it (0x9b begins an escape sequence).
 */
export const asciiText = (text: string): string =>
  /^[\u0000-\u007f]*$/.test(text)
    ? text
    : text
        .replaceAll(anyMark, (mark) => marks[mark] ?? '?')
        .normalize('NFKD')
        .replaceAll(/\p{Mn}/gu, '')
        .replaceAll(/[^\u0000-\u007f]/gu, '?')

/** JSON text that means the same, in ASCII. */
export const asciiJson = (json: string): string =>
  json.replaceAll(
    /[\u0080-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
