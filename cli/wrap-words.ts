import { wrapLine } from './wrap.ts'

/**
 * The lines of a text that begins where `used` columns are taken already, and goes on `indent` columns
 * in. As `wrapLine`, it breaks no URL and no command. Without `columns` there is one line.
 */
export const wrapWords = (
  text: string,
  columns: number | undefined,
  { used = 0, indent = 0 }: { readonly used?: number; readonly indent?: number } = {},
): string[] =>
  columns === undefined
    ? [text]
    : wrapLine(`${' '.repeat(used)}${text}`, columns, ' '.repeat(indent))
        .slice(used)
        .split('\n')
