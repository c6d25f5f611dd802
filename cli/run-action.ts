import type { Command, OptionValues } from 'commander'
import type { Context, GlobalOptions } from './context.ts'
import { endQuietlyWhenClosed } from './end-quietly.ts'

/** Makes an action of a command's function: it gets the context, the arguments and the options. */
export const run =
  <Options extends OptionValues>(
    load: () => Promise<(context: Context, args: string[], options: Options) => unknown>,
  ) =>
  async (...all: unknown[]): Promise<void> => {
    endQuietlyWhenClosed()
    const command = all.at(-1) as Command
    const [{ createContext }, action] = await Promise.all([import('./context.ts'), load()])
    const context = createContext(command.optsWithGlobals<GlobalOptions>(), wordsOf(command))
    await action(context, command.processedArgs.flat() as string[], command.opts<Options>())
  }

/** `oauth list`: a command's own name after those of its groups, without the program's. */
const wordsOf = (command: Command): string =>
  command.parent ? `${wordsOf(command.parent)} ${command.name()}`.trim() : ''
