import assert from 'node:assert/strict'
import type { Command } from 'commander'
import { createProgram } from '../../cli/program.ts'
import { tokenWords } from '../../cli/token-words.ts'

/** What the parser of arguments makes of them. */
const parsed = async (args: readonly string[]) => {
  let found: unknown
  const program = createProgram(args, undefined)
  const token = program.commands
    .find((command) => command.name() === 'oauth')
    ?.commands.find((command) => command.name() === 'token')
  token?.action((...all: unknown[]) => {
    const command = all.at(-1) as Command
    found = { provider: command.processedArgs[0], options: command.optsWithGlobals() }
  })
  await program.parseAsync([...args], { from: 'user' })
  return found
}

describe('cli: a token without the parser', () => {
  for (const line of [
    'oauth token github',
    'oauth token my_own-1 --json',
    '--quiet oauth token github',
    '-q oauth --no-color token --no-start github',
    '--home /tmp/a oauth token github --home /tmp/b',
    'oauth --home relative token token',
  ]) {
    it(`reads ${line} as the parser does`, async () => {
      const args = line.split(' ')
      const words = tokenWords(args)
      const options = { json: false, quiet: false, ...words?.options }
      assert.deepEqual(
        { provider: words?.provider, options },
        await parsed(args).then((found) => {
          const { provider, options: others } = found as { provider: string; options: object }
          return { provider, options: { json: false, quiet: false, ...others } }
        }),
      )
    })
  }

  for (const args of [
    [],
    ['oauth', 'token'],
    ['oauth', 'token', ''],
    ['oauth', 'token', 'github', 'slack'],
    ['oauth', 'token', 'github', '--min-validity', '60s'],
    ['oauth', 'token', 'github', '--help'],
    ['oauth', 'token', '--', 'github'],
    ['oauth', 'token', 'github', '--home'],
    ['oauth', 'token', 'github', '--home=/tmp/a'],
    ['oauth', 'token', '--home', '--json', 'github'],
    ['oauth', 'token', '-qj', 'github'],
    ['help', 'oauth', 'token'],
    ['oauth', 'list'],
  ])
    it(`leaves ${JSON.stringify(args)} to the parser`, () => {
      assert.equal(tokenWords(args), undefined)
    })
})
