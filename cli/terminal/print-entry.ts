import type { Terminal } from './terminal.ts'

/** Prints an entry that is not to be written: its lines, or as JSON `named` with its value and its lines. */
export const printEntry = (
  terminal: Terminal,
  named: { readonly name: string } | { readonly path: string },
  { lines, value }: { readonly lines: readonly string[]; readonly value: unknown },
): void => {
  const text = lines.join('\n')
  if (terminal.json) terminal.printJson({ ...named, entry: value, text })
  else terminal.print(text)
}
