import { basename } from 'node:path'
import { parse } from 'dotenv'
import type { StatusProblem } from '../../../../shared/api.ts'
import { readEnvironment, ignoredEnvLines } from '../../../../shared/config/environment.ts'
import {
  type Config,
  ConfigError,
  loadConfig,
  formatProblem,
} from '../../../../shared/config/load.ts'
import { collectWarnings } from '../../../../shared/config/warnings.ts'
import type { Problem } from '../../../../shared/config/yaml.ts'
import { DoorwardError } from '../../../../shared/errors.ts'
import { type Home, readSecretFile } from '../../../../shared/home/home.ts'
import { type Check, checksFor } from '../check.ts'

export type ConfigurationFacts = {
  readonly config: Config | undefined
  readonly problems: readonly Problem[]
  /** The variables that secrets are looked up in. */
  readonly env: NodeJS.ProcessEnv
  /** What `.env` says; the process environment wins over it. Undefined when it cannot be used. */
  readonly ofFile: Readonly<Record<string, string>> | undefined
  /** What `.env` has that is passed over. */
  readonly unread?: ReturnType<typeof ignoredEnvLines>
  /** Why `.env` cannot be used. */
  readonly envProblem?: { readonly detail: string; readonly hint: string | undefined }
}

/** Reads and checks the configuration, also where `.env` may not be used. */
export const lookAtConfiguration = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv,
): Promise<ConfigurationFacts> => {
  const read = await readEnv(home, processEnv)
  try {
    return { ...read, config: await loadConfig(home, read.env), problems: [] }
  } catch (error) {
    if (error instanceof ConfigError)
      return { ...read, config: undefined, problems: error.problems }
    throw error
  }
}

type ReadEnv = Pick<ConfigurationFacts, 'env' | 'ofFile' | 'unread' | 'envProblem'>

const readEnv = async (home: Home, processEnv: NodeJS.ProcessEnv): Promise<ReadEnv> => {
  try {
    const env = await readEnvironment(home, processEnv)
    const text = (await readSecretFile(home.env)) ?? ''
    return { env, ofFile: parse(text), unread: ignoredEnvLines(text) }
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    return {
      env: processEnv,
      ofFile: undefined,
      envProblem: { detail: error.message, hint: error.hint },
    }
  }
}

const { ok, warning, error, skipped } = checksFor('configuration')

/** What the running daemon alone can know of its configuration. */
const ofDaemon = ['restart-needed', 'config-not-watched']

/** The warnings that no other group has checks of its own for, and what they are about. */
const judgedHere: Readonly<Record<string, string>> = {
  'body-limit-too-large': 'limits',
  'provider-incomplete': 'providers',
}

/** Every problem of the three files with its place, and what the running daemon says of them. */
export const judgeConfiguration = (
  { config, problems, env }: ConfigurationFacts,
  hasHome: boolean,
  daemonSays: readonly StatusProblem[],
): Check[] => {
  if (!hasHome) return [skipped('files', 'there is no home yet')]
  const found = problems.map(({ hint, ...problem }) => {
    const isMissing = hint?.startsWith('doorward init')
    return error(
      basename(problem.file),
      formatProblem(isMissing || hint === undefined ? problem : { ...problem, hint }),
      isMissing ? 'doorward init' : editHint(problem.file),
    )
  })
  const said = daemonSays
    .filter(({ code }) => ofDaemon.includes(code))
    .map(({ detail, hint }) => warning('daemon', detail, hint))
  if (!config) return [...found, ...said]
  const { webhooks, agents } = config
  const enabled = webhooks.filter((webhook) => webhook.enabled).length
  return [
    ok(
      'files',
      `${count(webhooks.length, 'webhook')} (${enabled} enabled), ${count(agents.size, 'agent')}`,
    ),
    ...collectWarnings(config, env).flatMap(({ code, detail, hint }) => {
      const name = judgedHere[code]
      return name === undefined ? [] : [warning(name, detail, hint)]
    }),
    ...said,
  ]
}

const editHint = (file: string): string => {
  const [, name] = /(webhooks|agents|gateway)\.yaml$/.exec(file) ?? []
  return name === undefined
    ? 'mend it, then: doorward config check'
    : `doorward config edit ${name}`
}

const count = (number: number, what: string): string =>
  `${number} ${what}${number === 1 ? '' : 's'}`

/*
 * What is wrong with a secret whatever its sender: a text that stands for one, or one that can be
 * guessed. Says nothing of the value itself.
 */

const placeholders =
  /^(change[-_ ]?me|replace[-_ ]?me|todo|fixme|tbd|secret|password|passw0rd|test|testing|example|dummy|foo|bar|abc|none|null|undefined|x{3,}|\*{3,}|\.{3,}|-+|12345\d*|0+)!?$/i
const placeholderWords =
  /^<.*>$|^\[.*\]$|^\$\{?\w+\}?$|\b(your|my)[-_ ]?(\w+[-_ ])?(secret|token|key|password)\b|change[-_ ]?me|replace[-_ ]?(me|this|with)|goes[-_ ]here|insert[-_ ]/i

const shortest = 16

/** Why a secret is none, or a bad one: `bad` when it cannot be meant. */
export const shapeFault = (
  value: string,
): { readonly reason: string; readonly bad: boolean } | undefined => {
  const text = value.trim()
  if (placeholders.test(text) || placeholderWords.test(text))
    return { reason: 'holds a placeholder, not a secret', bad: true }
  if (text.length < shortest)
    return { reason: `is shorter than ${shortest} characters: it can be guessed`, bad: false }
  if (new Set(text).size < 6)
    return { reason: 'repeats a few characters: it can be guessed', bad: false }
  return undefined
}
