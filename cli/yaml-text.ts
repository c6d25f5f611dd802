/*
 * Values as YAML writes them, for entries that are added to a file of a person's own. Pure.
 */

const reserved = /^(true|false|null|yes|no|on|off|y|n)$/i

/** A text as a scalar that is read back as this text. */
export const yamlText = (text: string): string => {
  if (/^[A-Za-z_/][\w/.-]*$/.test(text) && !reserved.test(text)) return text
  // Other kinds of target and header are plain where they hold nothing that YAML means something by.
  if (/^[A-Za-z][\w-]*:[\w/@.-]+$/.test(text)) return text
  return /[\p{Cc}\p{Cf}]/u.test(text) ? JSON.stringify(text) : `'${text.replaceAll("'", "''")}'`
}

/** The same where a number or a truth value means the same as its text. */
export const yamlScalar = (text: string): string =>
  /^(true|false|0|[1-9]\d{0,14})$/.test(text) ? text : yamlText(text)

/** One scalar, or a list of several in brackets. */
export const yamlOneOrList = (
  texts: readonly string[],
  write: (text: string) => string = yamlText,
): string => {
  const [first = ''] = texts
  return texts.length === 1 ? write(first) : `[${texts.map(write).join(', ')}]`
}

/** `key: |` and the lines of a text below it; in one line where a block could not hold it. */
export const yamlBlock = (key: string, text: string): string[] => {
  const isPlain = /^\S/.test(text) && !/[^\P{Cc}\n]|[\u2028\u2029\ufeff]/u.test(text)
  if (!isPlain) return [`${key}: ${JSON.stringify(text)}`]
  const ending = text.endsWith('\n') ? (text.endsWith('\n\n') ? '+' : '') : '-'
  const lines = text.replace(/\n$/, '').split('\n')
  return [`${key}: |${ending}`, ...lines.map((line) => (line === '' ? '' : `  ${line}`))]
}
