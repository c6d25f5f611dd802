import { type Command, InvalidArgumentError, type OptionValues } from 'commander'
import { parseMilliseconds } from '../shared/text.ts'
import type { Context, GlobalOptions } from './context.ts'
import { exitOnEpipe } from './terminal/output.ts'

/** Makes an action of a command's function: it gets the context, the arguments and the options. */
export const run =
  <Options extends OptionValues>(
    load: () => Promise<(context: Context, args: string[], options: Options) => unknown>,
  ) =>
  async (...all: unknown[]): Promise<void> => {
    exitOnEpipe()
    const command = all.at(-1) as Command
    const [{ createContext }, action] = await Promise.all([import('./context.ts'), load()])
    const context = createContext(command.optsWithGlobals<GlobalOptions>(), commandPath(command))
    await action(context, command.processedArgs.flat() as string[], command.opts<Options>())
  }

/** `oauth list`: a command's own name after those of its groups, without the program's. */
const commandPath = (command: Command): string =>
  command.parent ? `${commandPath(command.parent)} ${command.name()}`.trim() : ''

/*
 * What the argument parser makes of the value of an option. Each throws what it is to be instead.
 */

export const wholeNumber = (text: string): number => {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It is a number from 1 to 999999.')
}

/** Seconds, without a fraction. */
export const seconds = (text: string): number => {
  const ms = parseMilliseconds(/^\d+$/.test(text) ? `${text}s` : text)
  if (ms <= 30 * 86_400_000) return Math.ceil(ms / 1000)
  throw new InvalidArgumentError('It is a duration such as 60s, 10m or 1h, of 30d at most.')
}

/** The values of an option that can be repeated. */
export const listed = (text: string, before: string[] = []): string[] => [...before, text]
