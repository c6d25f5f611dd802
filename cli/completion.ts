import { readFile } from 'node:fs/promises'
import { packageFolder } from '../shared/version.ts'
import type { Context } from './context.ts'

/** Prints the completion of a shell: a small script that asks `doorward __complete` at each key. */
export const printCompletion = async (
  { terminal }: Context,
  [shell = '']: string[],
): Promise<void> => {
  const file = new URL(`assets/completion/doorward.${shell}`, packageFolder)
  terminal.print((await readFile(file, 'utf8')).trimEnd())
}
