import { readFile } from 'node:fs/promises'
import type { Argument, Command, Option } from 'commander'
import { resolveHome } from '../../shared/home/home.ts'
import { toPlainLine } from '../../shared/text.ts'
import { packageFolder, getUserAgent } from '../../shared/version.ts'
import type { Context } from '../context.ts'
import {
  type Candidate,
  type Directive,
  type Place,
  findPlace,
  type Sources,
  getValues,
} from './completion-values.ts'
import { withDeadline } from '../../shared/deadline.ts'

/** Prints the completion script of a shell, which calls `doorward __complete`. */
export const printCompletion = async (
  { terminal }: Context,
  [shell = '']: string[],
): Promise<void> => {
  const file = new URL(`assets/completion/doorward.${shell}`, packageFolder)
  terminal.print((await readFile(file, 'utf8')).trimEnd())
}

/** The user is waiting for the answer. */
const longestMs = 1000
const noteCharacters = 60

type Answer = { readonly candidates: readonly Candidate[]; readonly directive?: Directive }

/**
 * Prints completions of the last word: a line each, with a tab and a note, and `:files`, `:dirs` or
 * `:commands` where the shell completes better. Never starts a daemon, never fails, and exits after a
 * second with what it has.
 */
export const complete = async (program: Command, words: readonly string[]): Promise<void> => {
  const place = findPlace(program, words.slice(0, -1), words.at(-1) ?? '')
  const computed = computeCompletion(place)
  const late = (): Answer => ({ candidates: listFixed(place) })
  const { candidates, directive } = await withDeadline(longestMs, computed, late)
  const lines = candidates.map(({ value, note }) => `${place.before}${value}\t${shortNote(note)}`)
  const all = [...lines, ...(directive ? [`:${directive}`] : [])]
  process.stdout.write(all.map((line) => `${line}\n`).join(''), () => process.exit(0))
}

const computeCompletion = async (place: Place): Promise<Answer> => {
  if (place.isForeign) return { candidates: [], directive: 'commands' }
  const fixed = listFixed(place)
  const wanted = place.option ?? place.argument
  const choices = wanted?.argChoices
  if (choices) return { candidates: [...fixed, ...choices.map((value) => ({ value }))] }
  const values = wanted && getValues(place.path, getName(wanted))
  if (values === undefined) return { candidates: fixed }
  if (typeof values === 'string') return { candidates: fixed, directive: values }
  try {
    const found = await values(getSources(place), place.path)
    return { candidates: [...fixed, ...found.filter(({ value }) => isPlain(value))] }
  } catch {
    return { candidates: fixed }
  }
}

/** Candidates that need no daemon and no file. */
const listFixed = ({ group, options }: Place): Candidate[] => [
  ...(group
    ? group
        .createHelp()
        .visibleCommands(group)
        .map((command) => ({ value: command.name(), note: command.description() }))
    : []),
  ...options
    .filter(({ hidden }) => !hidden)
    .map(({ long, short, description }) => ({ value: long ?? short ?? '', note: description })),
]

/** `path` of `--webhook <path>`, `name` of `[name]`, `sample` of `--sample [name]`. */
const getName = (wanted: Argument | Option): string => {
  if ('flags' in wanted)
    return wanted.long === '--sample' ? 'sample' : (/[<[]([a-z-]+)/.exec(wanted.flags)?.[1] ?? '')
  return wanted.name()
}

const getSources = ({ home: typed, path }: Place): Sources => {
  const home = () => resolveHome(typed)
  const client = async () => {
    const { findDaemon } = await import('../daemon-client/connect.ts')
    const userAgent = getUserAgent('cli', `complete ${path.join(' ')}`)
    return findDaemon({ home: home(), userAgent })
  }
  return { home, client }
}

/** A candidate is one line and starts with no colon, which is for the shell. */
const isPlain = (value: string): boolean =>
  value !== '' && !value.startsWith(':') && value === toPlainLine(value)

const shortNote = (note = ''): string => {
  const line = toPlainLine(note)
  return line.length > noteCharacters ? `${line.slice(0, noteCharacters - 3)}...` : line
}
