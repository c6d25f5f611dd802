import { parse } from 'dotenv'
import type { Home } from './home.ts'
import { readSecretFile } from './home.ts'

/**
 * The variables that secrets are looked up in: the home's `.env`, over which the process environment
 * wins. Throws `home-insecure` when others can read the file.
 */
export const readEnvironment = async (
  home: Home,
  processEnv: NodeJS.ProcessEnv = process.env,
): Promise<NodeJS.ProcessEnv> => {
  const text = await readSecretFile(home.env)
  // Without a prototype: secret_env may name toString, and means a variable.
  return Object.assign(
    Object.create(null) as NodeJS.ProcessEnv,
    text === undefined ? {} : parse(text),
    processEnv,
  )
}

/** The values of these variables that are set to more than white space. */
export const secretsOf = (names: readonly string[], env: NodeJS.ProcessEnv): string[] =>
  names.flatMap((name) => {
    const value = env[name]
    return value === undefined || value.trim() === '' ? [] : [value]
  })
