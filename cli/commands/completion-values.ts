import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Argument, Command, Option } from 'commander'
import type { EventRecord, SessionList } from '../../shared/api/api.ts'
import { describeOrigin } from '../../shared/event-stages.ts'
import type { Client } from '../../shared/client/client.ts'
import { builtInProviders, getProviderName, parseLogin } from '../../shared/config/name-forms.ts'
import type { Home } from '../../shared/home/home.ts'
import { fromNow } from '../terminal/format.ts'
import { eventStates, isFinished } from './events/format.ts'

/** A completion with a note. */
export type Candidate = { readonly value: string; readonly note?: string }

/** The sources of values; each is read only when needed. */
export type Sources = {
  readonly home: () => Home
  /** The running daemon, for the ids of events; throws where none runs. */
  readonly client: () => Promise<Client>
}

/** The shell itself completes these. */
export type Directive = 'files' | 'dirs' | 'commands'

type Values = (sources: Sources, path: readonly string[]) => Promise<Candidate[]> | Candidate[]

const named = (values: readonly string[]): Candidate[] => values.map((value) => ({ value }))

/** The names or paths under the only key of a configuration file. */
const configured = async (home: Home, name: string, key: string): Promise<string[]> => {
  const { readYaml } = await import('../../shared/config/yaml.ts')
  const file = join(home.config, `${name}.yaml`)
  const { value } = readYaml(file, await readFile(file, 'utf8'))
  const entries = (value as Record<string, unknown> | null)?.[key]
  if (!Array.isArray(entries)) return Object.keys(entries ?? {})
  return entries.flatMap((entry: { path?: unknown; name?: unknown } | null) => {
    const name = entry?.path ?? entry?.name
    return typeof name === 'string' ? [name] : []
  })
}

const webhooks: Values = async ({ home }) => named(await configured(home(), 'webhooks', 'webhooks'))

const schedules: Values = async ({ home }) =>
  named(await configured(home(), 'schedules', 'schedules'))

const tokenFiles = async ({ home }: Sources): Promise<string[]> =>
  (await readdir(home().tokens).catch(() => [])).flatMap((file) =>
    file.endsWith('.json') ? [file.slice(0, -'.json'.length)] : [],
  )

/** For a login every provider, for a choice of the default those with a login, else all logins. */
const providers: Values = async (sources, path) => {
  const logins = await tokenFiles(sources)
  if (path.at(-1) === 'default') return named([...new Set(logins.map(getProviderName))])
  if (path.at(-1) !== 'login') return named(logins)
  const own = await configured(sources.home(), 'gateway', 'providers').catch(() => [])
  return named([...new Set([...builtInProviders, ...own, ...logins])])
}

/** The names of accounts, of any provider. */
const accounts: Values = async (sources) =>
  (await tokenFiles(sources)).flatMap((login) => {
    const { account } = parseLogin(login) ?? {}
    return account === undefined ? [] : [{ value: account, note: login }]
  })

/** Notes say what an event is and when it came, nothing of a payload or an answer. */
const events: Values = async ({ client }, path) => {
  const answer = await (await client()).get<{ events: EventRecord[] }>('/events?limit=50')
  const now = new Date()
  return answer.events
    .filter(({ state, kind }) => {
      const command = path.at(-1)
      if (command === 'deliver') return state === 'done'
      if (command === 'approve' || command === 'reject' || command === 'again')
        return state === 'waiting'
      if (command === 'cancel') return kind === 'webhook' && !isFinished(state)
      return command !== 'retry' || state === 'expired' || state === 'failed' || state === 'dropped'
    })
    .map(({ id, state, webhook, rule, kind, receivedAt }) => ({
      value: id,
      note: `${state}${isFinished(state) ? '' : '...'} ${describeOrigin({ webhook, rule, kind })} ${fromNow(receivedAt, now)}`,
    }))
}

/** Conversations by their keys. */
const sessions: Values = async ({ client }) => {
  const answer = await (await client()).get<SessionList>('/sessions')
  return answer.sessions.map(({ key, webhook, rule, program }) => ({
    value: key,
    note: `${program} ${describeOrigin({ webhook, rule, kind: 'webhook' })}`,
  }))
}

const samples: Values = async () => {
  const { sampleNames } = await import('../../shared/samples/samples.ts')
  return named(sampleNames())
}

const bots: Values = async ({ home }) =>
  (await readdir(home().clients).catch(() => [])).flatMap((file) => {
    const [, value] = /^github@(.+)\.json$/.exec(file) ?? []
    return value === undefined ? [] : [{ value }]
  })

/** Values by the name of an argument or option value in the help. */
const values: Readonly<Record<string, Values | Directive>> = {
  path: webhooks,
  webhook: webhooks,
  provider: providers,
  account: accounts,
  state: () => named(eventStates),
  agent: async ({ home }) => named(await configured(home(), 'agents', 'agents')),
  sample: samples,
  operation: () => named(['get', 'store', 'erase']),
  file: 'files',
  dir: 'dirs',
}

/** Values by the whole command, where the name alone is not enough. */
const special: Readonly<Record<string, Values | Directive>> = {
  'events show id': events,
  'events open id': events,
  'events retry id': events,
  'events cancel id': events,
  'config edit name': () => named(['webhooks', 'agents', 'gateway', 'schedules', 'env']),
  'schedule run name': schedules,
  'schedule pause name': schedules,
  'schedule resume name': schedules,
  'events approve id': events,
  'events reject id': events,
  'events again id': events,
  'events deliver id': events,
  'events forget id': events,
  'session show key': sessions,
  'session forget key': sessions,
  'session open key': sessions,
  'session close key': sessions,
  'webhook connect sender': async () =>
    named((await import('../../shared/config/source.ts')).sourceProviders),
  // A path that exists cannot be added.
  'webhook add path': () => [],
  'webhook add preset': async () => {
    const { recipes, webhookPresets } = await import('../../shared/recipes/presets.ts')
    const titles = Object.entries(webhookPresets).map(
      ([value, { title }]) => [value, title] as const,
    )
    return [...Object.entries(recipes), ...titles].map(([value, note]) => ({ value, note }))
  },
  'agent add kind': async () =>
    named((await import('../../shared/recipes/new-agent.ts')).agentKinds),
  'bot show name': bots,
  'bot install name': bots,
  'bot rotate name': bots,
  'bot remove name': bots,
  'oauth import program': () => named(['gh']),
  'oauth token format': async () => named((await import('./oauth/token.ts')).tokenFormats),
  'help name': async () => {
    const { helpTopics } = await import('./help.ts')
    return Object.entries(helpTopics).map(([value, note]) => ({ value, note }))
  },
  'config schema name': () => named(['webhooks', 'agents', 'gateway', 'schedules']),
}

/** The values for an argument or option of this name; undefined for free text. */
export const getValues = (path: readonly string[], name: string): Values | Directive | undefined =>
  special[[...path, name].join(' ')] ?? (Object.hasOwn(values, name) ? values[name] : undefined)

/** The candidates at the end of a command line. */
export type Place = {
  /** Words of the command, without the program's: `['oauth', 'login']`. */
  readonly path: readonly string[]
  /** The group, where a command of it may follow. */
  readonly group?: Command | undefined
  /** The argument or option value that may follow. */
  readonly argument?: Argument | undefined
  readonly option?: Option | undefined
  /** The start of the same word before the value: `--webhook=`. */
  readonly before: string
  /** Options of the command and the program that are not used yet. */
  readonly options: readonly Option[]
  /** After `--`: the command line of another program. */
  readonly isForeign: boolean
  /** The value of `--home`. */
  readonly home?: string | undefined
}

/** Parses a command line up to the word being typed, as the argument parser would. */
export const findPlace = (program: Command, typed: readonly string[], current: string): Place => {
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

/** True for an option that may be repeated. */
const isRepeated = ({ variadic, parseArg, long }: Option): boolean =>
  variadic ||
  (parseArg !== undefined && ['--header', '--filter', '--deliver-to', '--env'].includes(long ?? ''))
