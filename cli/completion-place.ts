import type { Argument, Command, Option } from 'commander'

/** What can stand at the end of a command line that is being typed. */
export type Place = {
  /** Words of the command, without the program's: `['oauth', 'login']`. */
  readonly path: readonly string[]
  /** Where it may be a command of a group: the group. */
  readonly group?: Command | undefined
  /** Where it may be an argument, or the value of an option: that. */
  readonly argument?: Argument | undefined
  readonly option?: Option | undefined
  /** Stands before the value of an option in the same word: `--webhook=`. */
  readonly before: string
  /** Where it is an option: those of the command and of the program that are not there yet. */
  readonly options: readonly Option[]
  /** After `--`: the command line of another program. */
  readonly isForeign: boolean
  /** What `--home` names in it. */
  readonly home?: string | undefined
}

/** Reads a command line up to the word that is being typed, as the argument parser would. */
export const placeOf = (program: Command, typed: readonly string[], current: string): Place => {
  let command = program
  const path: string[] = []
  const used = new Set<Option>()
  let operands = 0
  let isAfterDashes = false
  let isHelp = false
  let waiting: Option | undefined
  let home: string | undefined
  const known = () => [...new Set([...visibleOptions(command), ...program.options])]
  const find = (name: string) => known().find(({ long, short }) => name === long || name === short)

  for (const word of typed) {
    if (waiting && !(waiting.optional && word.startsWith('-'))) {
      if (waiting.long === '--home') home = word
      waiting = undefined
      continue
    }
    waiting = undefined
    if (isAfterDashes) operands += 1
    else if (word === '--') isAfterDashes = true
    else if (word.startsWith('-') && word !== '-') {
      const [name = '', ...value] = word.split('=')
      const option = find(name)
      if (!option) continue
      used.add(option)
      if (value.length === 0 && takesValue(option)) waiting = option
      else if (option.long === '--home') home = value.join('=')
    } else if (operands === 0 && command === program && !isHelp && word === 'help') {
      isHelp = true
    } else if (operands === 0 && commandNamed(command, word)) {
      command = commandNamed(command, word) ?? command
      path.push(word)
    } else operands += 1
  }

  const place = { path, before: '', options: [], isForeign: false, home }
  if (isAfterDashes && path.at(-1) === 'exec') return { ...place, isForeign: true }
  if (waiting && !(waiting.optional && current.startsWith('-')))
    return { ...place, option: waiting }
  if (!isAfterDashes && current.startsWith('-')) {
    const [name = '', ...value] = current.split('=')
    if (value.length > 0) return { ...place, option: find(name), before: `${name}=` }
    return {
      ...place,
      options: known().filter((option) => !used.has(option) || isRepeated(option)),
    }
  }
  const group = operands === 0 && command.commands.length > 0 ? command : undefined
  if (isHelp) {
    const isFirst = command === program && operands === 0
    const [topic] = commandNamed(program, 'help')?.registeredArguments ?? []
    return { ...place, group, ...(isFirst && { path: ['help'], argument: topic }) }
  }
  const { registeredArguments } = command
  const last = registeredArguments.at(-1)
  const argument = registeredArguments[operands] ?? (last?.variadic ? last : undefined)
  return { ...place, group, argument }
}

const commandNamed = ({ commands }: Command, word: string): Command | undefined =>
  commands.find((known) => known.name() === word || known.aliases().includes(word))

const visibleOptions = (command: Command): Option[] => command.createHelp().visibleOptions(command)

const takesValue = ({ required, optional }: Option): boolean => required || optional

/** One that collects, and so may come again. */
const isRepeated = ({ variadic, parseArg, long }: Option): boolean =>
  variadic ||
  (parseArg !== undefined && ['--header', '--filter', '--deliver-to', '--env'].includes(long ?? ''))
