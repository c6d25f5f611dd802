#!/usr/bin/env node
import { version } from '../shared/version.ts'
import { endWithError } from './errors.ts'
import { endAtOnce, printAtOnce } from './print-at-once.ts'
import { type TokenWords, tokenWords } from './token-words.ts'

/*
 * Runs the command that the arguments name, and ends with its exit code. Two are known without the
 * parser of arguments, which takes longer than they do.
 */

const main = async (args: readonly string[]): Promise<void> => {
  const words = tokenWords(args)
  try {
    if (words) await printToken(words)
    else if (args.length === 1 && args[0] === '--version') printAtOnce(`${version}\n`)
    else return await (await import('./program.ts')).runProgram(args)
    endAtOnce()
  } catch (error) {
    await endWithError(error, words?.options.json ?? false)
  }
}

const printToken = async ({ provider, options }: TokenWords): Promise<void> => {
  const [{ createContext }, { printTokenQuickly }] = await Promise.all([
    import('./context.ts'),
    import('./quick-token.ts'),
  ])
  const context = createContext({ ...options, isOnce: true }, 'oauth token')
  if (await printTokenQuickly(context, provider)) return
  const token = await import('./commands/oauth/token.ts')
  await token.printToken(context, [provider], {})
}

void main(process.argv.slice(2))
