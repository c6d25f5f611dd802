import { type Command, CommanderError } from 'commander'
import { endWithError } from './end-with-error.ts'
import { exitUsage } from './exit-code.ts'
import { createProgram } from './program.ts'
import { run } from './run-action.ts'
import { splitAtDashes } from './split-at-dashes.ts'
import { usageError } from './usage-error.ts'

/** Runs the command that the arguments name, and sees to the exit code. */
export const runProgram = async (args: readonly string[]): Promise<void> => {
  const { own, rest } = splitAtDashes(args)
  const json = own.includes('--json')
  const program = createProgram(own, rest)
  try {
    if (rest === undefined && isAlone(program, own)) {
      await run(async () => (await import('./welcome.ts')).welcome)(program)
      return
    }
    if (rest === undefined && isExec(own)) {
      const { missingDashes } = await import('./oauth-exec.ts')
      throw missingDashes()
    }
    await program.parseAsync(args, { from: 'user' })
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) return endWithError(thrown, json)
    const isUnknown = thrown.code === 'commander.unknownCommand'
    const error = usageError(thrown, isUnknown ? createProgram(groups, rest) : program, own)
    if (error) await endWithError(error, json, exitUsage)
  }
}

/** A program made with these words has all its commands. */
const groups = ['daemon', 'oauth', 'webhook', 'agent', 'events', 'config']

/** Without its `--`, the options of the command would be taken for ours: `exec github gh --version`. */
const isExec = (args: readonly string[]): boolean =>
  / oauth exec /.test(` ${args.join(' ')} `) &&
  !args.some((word) => /^(-h|--help)$/.test(word)) &&
  args.find((word) => !word.startsWith('-')) !== 'help'

/** `doorward` with no command, and with options at most that every command takes. */
const isAlone = (program: Command, args: readonly string[]): boolean => {
  const names = new Set(program.commands.map((command) => command.name()))
  if (args.some((word) => names.has(word) || /^(-h|--help|--version)$/.test(word))) return false
  const { operands, unknown } = program.parseOptions([...args])
  return operands.length === 0 && unknown.length === 0
}
