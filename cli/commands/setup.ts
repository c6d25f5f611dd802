import type { Context } from '../context.ts'
import { readHelpTopic } from './help.ts'

/** Prints the text by which an agent program sets doorward up, as it is: the reader is no person. */
export const printSetup = async ({ terminal }: Context): Promise<void> => {
  const text = await readHelpTopic('setup-for-agents')
  if (terminal.json) terminal.printJson({ text })
  else terminal.print(text.trimEnd())
}
