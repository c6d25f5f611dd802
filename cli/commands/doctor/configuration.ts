import { constants, existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { parse } from 'dotenv'
import { type Check, checksFor } from '../../../shared/api/checks.ts'
import { envFileWarnings, readEnvironment } from '../../../shared/config/environment.ts'
import { type Config, ConfigError, loadConfig, formatProblem } from '../../../shared/config/load.ts'
import type { Warning } from '../../../shared/config/warning.ts'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import type { Problem } from '../../../shared/config/yaml.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'

export type ConfigurationFacts = {
  readonly config: Config | undefined
  readonly problems: readonly Problem[]
  /** The variables that secrets come from. */
  readonly env: NodeJS.ProcessEnv
  /** The variables of `.env`, also where it is not used. Undefined when it cannot be read. */
  readonly fileEnv: Readonly<Record<string, string>> | undefined
  /** Lines of `.env` that are ignored, or set another value than they show. */
  readonly envWarnings?: readonly Warning[]
  /** Why `.env` cannot be used. */
  readonly envProblem?: { readonly detail: string; readonly hint: string | undefined }
}

/** Loads the configuration, also where `.env` cannot be used. */
export const collectConfiguration = async (
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

type ReadEnv = Pick<ConfigurationFacts, 'env' | 'fileEnv' | 'envWarnings' | 'envProblem'>

const readEnv = async (home: Home, processEnv: NodeJS.ProcessEnv): Promise<ReadEnv> => {
  try {
    const env = await readEnvironment(home, processEnv)
    const text = (await readSecretFile(home.env)) ?? ''
    return { env, fileEnv: parse(text), envWarnings: envFileWarnings(text) }
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    return {
      env: processEnv,
      fileEnv: await readInsecureEnv(home.env),
      envProblem: { detail: error.message, hint: error.hint },
    }
  }
}

/**
 * The variables of a `.env` that other users can read: no secret is used, but doctor can tell which are set.
 * Undefined for a link, a file of another user, or one that cannot be read.
 */
const readInsecureEnv = async (path: string): Promise<Record<string, string> | undefined> => {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    // Neither flag exists on Windows, where no file is insecure.
    .catch(() => undefined)
  if (!file) return undefined
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.uid !== process.getuid?.()) return undefined
    return parse(await file.readFile('utf8'))
  } catch {
    return undefined
  } finally {
    await file.close()
  }
}

const { ok, warning, error, skipped } = checksFor('configuration')

/** The name of the check that shows a warning. Those of other groups are not in this list. */
const names: Readonly<Record<string, string>> = {
  'body-limit-too-large': 'limits',
  'provider-incomplete': 'providers',
  'filter-path-prefix': 'filters',
  'filter-path-header': 'filters',
  'filter-value-literal': 'filters',
  'filter-value-boolean': 'filters',
  'placeholder-unfinished': 'prompts',
  'context-unused': 'prompts',
  'path-unknown': 'rules',
  'event-unknown': 'rules',
  'rules-equal': 'rules',
  'queue-unset': 'queue',
  'queue-invalid': 'queue',
}

/** Reports every problem of the three files. */
export const checkConfiguration = (
  { config, problems, env }: ConfigurationFacts,
  home: Home,
): Check[] => {
  if (!existsSync(home.root)) return [skipped('files', 'there is no home yet')]
  const found = problems.map(({ hint, ...problem }) => {
    const { file } = problem
    if (!existsSync(file)) return error(basename(file), formatProblem(problem), 'doorward init')
    const detail = formatProblem(hint === undefined ? problem : { ...problem, hint })
    return error(basename(file), detail, editHint(file))
  })
  if (!config) return found
  const { webhooks, agents } = config
  const enabled = webhooks.filter((webhook) => webhook.enabled).length
  return [
    ok(
      'files',
      `${count(webhooks.length, 'webhook')} (${enabled} enabled), ${count(agents.size, 'agent')}`,
    ),
    ...collectWarnings(config, env).flatMap(({ code, detail, hint }) => {
      const name = names[code]
      return name === undefined ? [] : [warning(name, detail, hint)]
    }),
  ]
}

const editHint = (file: string): string => {
  const [, name] = /(webhooks|agents|gateway)\.yaml$/.exec(file) ?? []
  return name === undefined ? 'fix it, then: doorward config check' : `doorward config edit ${name}`
}

const count = (number: number, what: string): string =>
  `${number} ${what}${number === 1 ? '' : 's'}`
