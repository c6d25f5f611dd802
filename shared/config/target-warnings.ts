import { lstat, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemCode } from '../errors.ts'
import { isFixed, type Template } from '../templates.ts'
import { listSecrets } from './environment.ts'
import type { Config } from './load.ts'
import { isLoopbackUrl } from './schema.ts'
import {
  parseDiscordUrl,
  parseHeaderValue,
  parseSigningKey,
  parseSmtpServer,
} from './target-secrets.ts'
import { fixedFolder, isOwnFile, makesFolders, resolveTargetFile } from './targets.ts'
import { variablesIn } from './variables.ts'
import type { Warning } from './warning.ts'

/** What keeps the targets of enabled webhooks from being delivered to, as far as that shows without trying. */
export const targetWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] => {
  const needed = new Map<string, Needed>()
  for (const variable of listVariables(config))
    needed.set(`${variable.target} ${variable.name}`, variable)
  return [
    ...[...needed.values()].flatMap((variable) => variableWarning(variable, env)),
    ...plainHttp(config),
  ]
}

type Needed = {
  readonly name: string
  readonly target: string
  /** What it holds, in words, and whether this is that. */
  readonly what: string
  readonly isGood?: (text: string) => boolean
}

const listVariables = ({ webhooks, gateway: { targets } }: Config): Needed[] =>
  webhooks
    .filter(({ enabled }) => enabled)
    .flatMap((webhook) => webhook.targets)
    .flatMap((target): Needed[] => {
      const named = (name: string | undefined, rest: Omit<Needed, 'name' | 'target'>, of = '') =>
        name === undefined ? [] : [{ name, target: `${target.kind}${of}`, ...rest }]
      switch (target.kind) {
        case 'none':
        case 'log':
        case 'notify':
        case 'file':
          return []
        case 'slack':
        case 'github':
        case 'telegram':
          return named(targets[target.kind].token_env, { what: 'a token' })
        case 'email':
          return named(targets.email.smtp_url_env, {
            what: 'smtps://user:password@host:465 or smtp://user:password@host:587 (with @ / # % in it written %40 %2F %23 %25)',
            isGood: (text) => parseSmtpServer(text) !== undefined,
          })
        case 'discord':
          return chosen(target.address, targets.discord).flatMap(([name, entry]) =>
            named(
              entry.url_env,
              {
                what: 'the https URL of a webhook, as Discord shows it',
                isGood: (text) => parseDiscordUrl(text) !== undefined,
              },
              `:${name}`,
            ),
          )
        case 'http':
          return chosen(target.address, targets.http).flatMap(([name, entry]) => [
            ...named(
              entry.secret_env,
              {
                what: 'a secret of Standard Webhooks: whsec_ and base64 of 24 to 64 bytes',
                isGood: (text) => parseSigningKey(text) !== undefined,
              },
              `:${name}`,
            ),
            ...variablesIn(entry.headers ?? {}).flatMap((variable) =>
              named(
                variable,
                {
                  what: 'the value of a header: one line of ASCII',
                  isGood: (text) => parseHeaderValue(text) !== undefined,
                },
                `:${name}`,
              ),
            ),
          ])
      }
    })

/** The entry that a target names, or all that an event may choose from. */
const chosen = <Entry>(
  address: Template,
  entries: Readonly<Record<string, Entry>>,
): [string, Entry][] =>
  Object.entries(entries).filter(([name]) => !isFixed(address) || name === address.source)

const variableWarning = ({ name, target, what, isGood }: Needed, env: NodeJS.ProcessEnv) => {
  const hint = `set ${name} in .env: doorward config edit env`
  const [value] = listSecrets([name], env)
  if (value === undefined)
    return [
      {
        code: 'target-secret-unset',
        detail: `target ${target}: ${name} is unset or empty; nothing can be delivered there`,
        hint,
      },
    ]
  if (isGood === undefined || isGood(value)) return []
  return [
    {
      code: 'target-secret-wrong',
      detail: `target ${target}: ${name} does not hold ${what}; nothing can be delivered there`,
      hint,
    },
  ]
}

const plainHttp = ({ gateway }: Config): Warning[] =>
  Object.entries(gateway.targets.http)
    .filter(([, { url }]) => new URL(url).protocol === 'http:' && !isLoopbackUrl(url))
    .map(([name]) => ({
      code: 'target-not-encrypted',
      detail: `target http:${name} is reached by http: answers can be read on their way`,
      hint: `use https in targets.http.${name}.url`,
    }))

/**
 * What the disk says of the file targets of enabled webhooks, as far as no event chooses the path, as
 * warnings: a folder that is not there and is not made, a link, a way that leads to doorward's own files.
 */
export const fileTargetWarnings = async (
  config: Config,
  homeFolder: string,
): Promise<Warning[]> => {
  const found = await Promise.all(
    listFilePaths(config, homeFolder).map(async ({ text, source, folder, file }) => {
      if (!makesFolders(source) && !(await isThere(folder))) return [missing(text, folder)]
      const why = await describeRefusal(folder, file, homeFolder)
      return why === undefined ? [] : [refused(text, why)]
    }),
  )
  return found.flat()
}

const missing = (text: string, folder: string): Warning => ({
  code: 'target-folder-missing',
  detail: `target ${text}: the folder ${folder} does not exist; nothing can be delivered there`,
  hint: 'make it, or write a path relative to the home: its folders are made',
})

const refused = (text: string, why: string): Warning => ({
  code: 'target-file-refused',
  detail: `target ${text}: ${why}; nothing is delivered there`,
  hint: 'choose another path, or take the link away',
})

/** Why a delivery would not write it, whatever its name says. */
const describeRefusal = async (
  folder: string,
  file: string | undefined,
  homeFolder: string,
): Promise<string | undefined> => {
  const real = join(await realFolder(folder), file === undefined ? '' : basename(file))
  if (isOwnFile(real, await realFolder(homeFolder)))
    return "a link leads from it to doorward's own files"
  if (file === undefined) return undefined
  const isLink = await lstat(file).then(
    (found) => found.isSymbolicLink(),
    () => false,
  )
  return isLink ? 'it is a symbolic link' : undefined
}

/** By its real name, also where the last parts of the path are still to be made. */
const realFolder = async (folder: string): Promise<string> => {
  try {
    return await realpath(folder)
  } catch {
    const above = dirname(folder)
    return above === folder ? folder : join(await realFolder(above), basename(folder))
  }
}

/** Also where it cannot be told: this is about folders that were forgotten. */
const isThere = async (folder: string): Promise<boolean> => {
  try {
    await stat(folder)
    return true
  } catch (error) {
    return systemCode(error) !== 'ENOENT'
  }
}

/** Where a file target of an enabled webhook leads, as far as no event chooses it. */
type FilePath = {
  /** As `deliver_to` has it. */
  readonly text: string
  /** The path as it is written, with its placeholders. */
  readonly source: string
  readonly folder: string
  /** Undefined where an event chooses it. */
  readonly file: string | undefined
}

/** The file targets of a configuration, each once. */
export const listFilePaths = ({ webhooks }: Config, homeFolder: string): FilePath[] => {
  const paths = new Map<string, FilePath>()
  for (const { enabled, targets } of webhooks)
    for (const target of enabled ? targets : [])
      if (target.kind === 'file') {
        const { text, path } = target
        const folder = fixedFolder(path, homeFolder)
        const file = isFixed(path) ? resolveTargetFile(path.source, homeFolder) : undefined
        paths.set(text, { text, source: path.source, folder, file })
      }
  return [...paths.values()]
}
