const inAscii: Readonly<Record<string, string>> = {
  '○': 'o',
  '●': '*',
  '✓': '+',
  '✗': 'x',
  '…': '~',
}

/** The marks of states and of what was cut, in ASCII and as wide as before, for a terminal without UTF-8. */
export const asciiMarks = (text: string): string =>
  text.replaceAll(/[○●✓✗…]/g, (mark) => inAscii[mark] ?? mark)

/**
 * Whether a terminal takes UTF-8, by the variables of POSIX (8.2 of the Base Definitions), the first
 * that is set. None is set in many containers and on Windows, whose terminals take it.
 */
export const takesUtf8 = (env: NodeJS.ProcessEnv): boolean => {
  const locale = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG']
  return !locale || /utf-?8/i.test(locale)
}
