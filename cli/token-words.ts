import type { GlobalOptions } from './context.ts'

export type TokenWords = { readonly provider: string; readonly options: GlobalOptions }

/**
 * What programs ask for again and again, `oauth token <provider>` with options that every command takes;
 * undefined for any other arguments. To load the parser of all of them takes longer than to be answered.
 */
export const tokenWords = (args: readonly string[]): TokenWords | undefined => {
  const words: string[] = []
  const options = { color: true, start: true, json: false, quiet: false }
  let home: string | undefined
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at] ?? ''
    if (word === '--json') options.json = true
    else if (word === '--quiet' || word === '-q') options.quiet = true
    else if (word === '--no-color') options.color = false
    else if (word === '--no-start') options.start = false
    else if (word === '--home') {
      at += 1
      home = args[at]
      if (home === undefined || home.startsWith('-')) return undefined
    } else if (word.startsWith('-') || word === '') return undefined
    else words.push(word)
  }
  const [group, command, provider, ...more] = words
  if (group !== 'oauth' || command !== 'token' || provider === undefined || more.length > 0)
    return undefined
  return { provider, options: home === undefined ? options : { ...options, home } }
}
