import { parse } from 'dotenv'
import { readEnvironment, unreadLines } from '../../../shared/config/environment.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import { type Config, ConfigError, loadConfig } from '../../../shared/config/load.ts'
import type { Problem } from '../../../shared/config/yaml.ts'

export type ConfigurationFacts = {
  readonly config: Config | undefined
  readonly problems: readonly Problem[]
  /** The variables that secrets are looked up in. */
  readonly env: NodeJS.ProcessEnv
  /** What `.env` says; the process environment wins over it. Undefined when it cannot be used. */
  readonly ofFile: Readonly<Record<string, string>> | undefined
  /** What `.env` has that is passed over. */
  readonly unread?: ReturnType<typeof unreadLines>
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
    return { env, ofFile: parse(text), unread: unreadLines(text) }
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    return {
      env: processEnv,
      ofFile: undefined,
      envProblem: { detail: error.message, hint: error.hint },
    }
  }
}
