import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'dotenv'
import { detectAgentClis } from '../agents/detect.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, prepareHome, readSecretFile, systemReason } from './home.ts'
import { packageFolder } from '../version.ts'
import { writeFileAtomic } from './files.ts'

/** The variable with the secret of the sample `webhooks.yaml`. */
export const sampleSecretName = 'GITHUB_WEBHOOK_SECRET'

const configNames = ['webhooks', 'agents', 'gateway', 'schedules'] as const

/**
 * Creates a home that a daemon can start on: folders, samples of missing configuration files, JSON Schema
 * files for editors, and a `.env` with a generated webhook secret if it is missing or the sample that needs
 * it is new. Never changes a file of the owner. `created` lists the written paths. Throws as `prepareHome`.
 */
export const initHome = async (home: Home): Promise<{ created: string[] }> => {
  await prepareHome(home)
  const created: string[] = []
  for (const name of configNames) {
    const sample = await readFile(new URL(`config/${name}.yaml`, packageFolder), 'utf8')
    const path = join(home.config, `${name}.yaml`)
    const text = name === 'agents' ? await withInstalledAgents(sample) : sample
    if (await writeNew(path, text)) created.push(path)
  }
  created.push(...(await refreshSchemas(home)))
  const isFresh = created.includes(join(home.config, 'webhooks.yaml'))
  if (isFresh || (await readSecretFile(home.env)) === undefined)
    if (await addWebhookSecret(home)) created.push(home.env)
  return { created }
}

/** Notes in the sample which agent programs are installed. */
const withInstalledAgents = async (sample: string): Promise<string> => {
  const found = (await detectAgentClis(process.env)).filter(({ path }) => path !== undefined)
  const names = found.map(({ kind }) => kind).join(', ') || 'none of them'
  return sample.replace(/^( *# Installed here):.*$/m, `$1 when this file was made: ${names}.`)
}

/**
 * Adds a random webhook secret (64 hex digits) for the sample to `.env`, unless the name is there, even
 * without a value. True when it was added.
 */
export const addWebhookSecret = async (home: Home): Promise<boolean> => {
  const text = await readSecretFile(home.env)
  if (text !== undefined && Object.hasOwn(parse(text), sampleSecretName)) return false
  return addSecret(home, sampleSecretName, randomBytes(32).toString('hex'))
}

/**
 * Adds a line to `.env` (0600), unless the name has a value there; the last of two lines counts. Returns
 * true when it was added. Throws `home-insecure` when others can read the file, `usage` for a value that a
 * line cannot contain.
 */
export const addSecret = async (home: Home, name: string, value: string): Promise<boolean> => {
  const text = await readSecretFile(home.env)
  const line = `${secretLine(name, value)}\n`
  if (text === undefined)
    return writeNew(home.env, `# Secrets as NAME=value; the environment wins over them.\n${line}`)
  const present = parse(text)
  if (Object.hasOwn(present, name) && present[name]?.trim() !== '') return false
  const separator = text === '' || text.endsWith('\n') ? '' : '\n'
  await writeFileAtomic(home.env, `${text}${separator}${line}`)
  return true
}

/** Sets a line of `.env` (0600), in place of one that is there. Throws as `addSecret`. */
export const replaceSecret = async (home: Home, name: string, value: string): Promise<void> => {
  if (await addSecret(home, name, value)) return
  const text = (await readSecretFile(home.env)) ?? ''
  const others = text
    .split('\n')
    .filter((line) => !new RegExp(`^\\s*(export\\s+)?${name}\\s*=`).test(line))
  const kept = others.join('\n').replace(/\n+$/, '')
  await writeFileAtomic(home.env, `${kept}\n${secretLine(name, value)}\n`)
}

/** `NAME=value` that dotenv reads back unchanged, quoted if necessary. */
const secretLine = (name: string, value: string): string => {
  const lines = ['', "'", '"', '`'].map((quote) => `${name}=${quote}${value}${quote}`)
  const line = lines.find((one) => parse(one)[name] === value)
  if (line !== undefined && !/[\r\n]/.test(value)) return line
  throw new DoorwardError('usage', `a line of .env cannot contain the value of ${name}`, {
    hint: 'it has a line break, or every kind of quote',
  })
}

/** Schema files belong to doorward, not to the owner: an upgrade replaces them. */
const refreshSchemas = async (home: Home): Promise<string[]> => {
  const folder = join(home.config, 'schema')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const written: string[] = []
  for (const name of configNames) {
    const schema = await readFile(new URL(`config/schema/${name}.json`, packageFolder), 'utf8')
    const path = join(folder, `${name}.json`)
    const present = await readFile(path, 'utf8').catch(() => undefined)
    if (present === schema) continue
    try {
      await writeFileAtomic(path, schema)
    } catch (error) {
      throw unwritable(path, error)
    }
    written.push(path)
  }
  return written
}

/** Writes a new file; false when the name exists, even as a dangling link. */
const writeNew = async (path: string, text: string): Promise<boolean> => {
  try {
    await writeFile(path, text, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw unwritable(path, error)
  }
}

const unwritable = (path: string, error: unknown): DoorwardError =>
  new DoorwardError('home-unusable', `cannot write ${path}: ${systemReason(error)}`, {
    cause: error,
    hint: 'make it writable for you, or set DOORWARD_HOME to another folder',
  })
