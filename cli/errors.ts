import type { Command, CommanderError } from 'commander'
import { DoorwardError, errorDocument } from '../shared/errors.ts'
import { toPlainJson, toPlainText } from '../shared/text.ts'
import { toExitCode, exitInterrupted } from './exit-code.ts'
import { exitOnEpipe } from './terminal/output.ts'
import { asInvoked, writeError } from './terminal/terminal.ts'

/** Says what went wrong, and sees to the exit code; who has interrupted us knows. */
export const endWithError = async (
  error: unknown,
  json: boolean,
  exitCode = toExitCode(error),
): Promise<void> => {
  exitOnEpipe()
  process.exitCode = exitCode
  if (exitCode === exitInterrupted) return
  reportError(error, json)
}

/** Writes an error to standard error: `doorward: <what>` and a hint, or the JSON document. */
export const reportError = (error: unknown, json: boolean): void => {
  const document = errorDocument(error)
  if (json) {
    process.stderr.write(`${toPlainJson(JSON.stringify(document, null, 2))}\n`)
    return
  }
  writeError(`doorward: ${toPlainText(document.detail)}`)
  if (document.hint) writeError(`hint: ${toPlainText(asInvoked(document.hint))}`)
  if (process.env['DOORWARD_DEBUG'] && error instanceof Error && error.stack)
    writeError(toPlainText(error.stack))
}

/** What the argument parser found wrong, as an error of ours; help and version are no errors. */
export const usageError = (
  error: CommanderError,
  program: Command,
  args: readonly string[],
): DoorwardError | undefined => {
  if (error.exitCode === 0) return undefined
  if (error.code === 'commander.help') return new DoorwardError('usage', 'a command is missing')
  const message = error.message.replace(/^error: /, '')
  const place = commandAt(program, args)
  const isFirst = error.code === 'commander.unknownCommand' && place === program.name()
  const elsewhere = isFirst ? namesakes(message, program) : []
  if (elsewhere.length > 0)
    return new DoorwardError('usage', message.split('\n')[0] ?? message, {
      hint: `did you mean ${elsewhere.map((name) => `"${name}"`).join(' or ')}?`,
    })
  const [, suggestion] = /\n\((Did you mean .*)\)$/s.exec(message) ?? []
  return new DoorwardError('usage', message.split('\n')[0] ?? message, {
    hint: suggestion ? inQuotes(suggestion) : `${place} --help`,
  })
}

/** `daemon logs` for `logs`: the commands of groups that have the name exactly. */
const namesakes = (message: string, program: Command): string[] => {
  const [, name] = /^unknown command '(.*)'/.exec(message) ?? []
  return program.commands.flatMap((group) =>
    group.commands
      .filter((command) => command.name() === name)
      .map((command) => `${group.name()} ${command.name()}`),
  )
}

/** `doorward oauth login`: as far as the words that were typed name commands. */
const commandAt = (program: Command, args: readonly string[]): string => {
  let command = program
  const names = [program.name()]
  for (const word of args) {
    const next = command.commands.find((known) => known.name() === word)
    if (!next) continue
    command = next
    names.push(word)
  }
  return names.join(' ')
}

/** `Did you mean start?`, or `Did you mean one of start, stop?`, as the other errors say it. */
const inQuotes = (suggestion: string): string =>
  suggestion.replace(/^Did you mean (?:one of )?(.*)\?$/, (_, names: string) => {
    const quoted = names.split(', ').map((name) => `"${name}"`)
    return `did you mean ${quoted.join(' or ')}?`
  })
