import { readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readEnvironment } from '../config/environment.ts'
import { initHome } from '../home/init-home.ts'
import { checkConfig, type Config, ConfigError } from '../config/load.ts'
import type { ConfigName } from '../config/schema.ts'
import { readYaml, readYamlBytes, type YamlFile } from '../config/yaml.ts'
import { DoorwardError, systemCode } from '../errors.ts'
import { writeFileAtomic } from '../home/files.ts'
import { type Home, systemReason } from '../home/home.ts'
import { withConfigLock } from '../home/lock.ts'

/** The configuration of a home as it is now, to be added to. */
export type OpenConfig = {
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  /** The plain value and the text of a file. */
  readonly file: (name: ConfigName) => YamlFile & { readonly path: string; readonly text: string }
  /** The same with this text in place of a file, which is not written. Throws what `check` throws. */
  readonly with: (name: ConfigName, text: string) => OpenConfig
  /** Throws `usage` with what would be wrong with this text in place of a file. */
  readonly check: (name: ConfigName, text: string) => void
  /** Replaces a file, whole or not at all. Throws `home-unusable`. */
  readonly write: (name: ConfigName, text: string) => Promise<void>
}

/**
 * Reads the configuration to add to it. Throws `config-invalid` when it cannot be used as it is: nothing
 * is added to what is broken.
 */
export const openConfig = async (home: Home): Promise<OpenConfig> => {
  await initHome(home)
  const env = await readEnvironment(home)
  const read = async (name: ConfigName) => {
    const path = join(home.config, `${name}.yaml`)
    const bytes = await readFile(path).catch((error: unknown) => {
      throw unusable(`cannot read ${path}`, error)
    })
    return { ...readYamlBytes(path, bytes), path }
  }
  const files = {
    gateway: await read('gateway'),
    agents: await read('agents'),
    webhooks: await read('webhooks'),
    schedules: await read('schedules'),
  }
  return toOpenConfig(home, env, files)
}

type OpenFiles = Readonly<Record<ConfigName, ReturnType<OpenConfig['file']>>>

const toOpenConfig = (home: Home, env: NodeJS.ProcessEnv, files: OpenFiles): OpenConfig => {
  const configWith = (changed: Partial<Record<ConfigName, YamlFile>>): Config => {
    const { gateway, agents, webhooks, schedules } = { ...files, ...changed }
    return checkConfig(gateway, agents, webhooks, env, home.root, schedules)
  }
  return {
    config: configWith({}),
    env,
    file: (name) => files[name],
    with: (name, text) => {
      const { path } = files[name]
      return checked(() =>
        toOpenConfig(home, env, { ...files, [name]: { ...readYaml(path, text), path, text } }),
      )
    },
    check: (name, text) => {
      checked(() => configWith({ [name]: readYaml(files[name].path, text) }))
    },
    write: async (name, text) => {
      const { path } = files[name]
      try {
        // The owner may have made the name a link, into a folder under version control for example.
        const target = await realpath(path)
        await writeFileAtomic(target, text, (await stat(target)).mode & 0o777)
      } catch (error) {
        throw unusable(`cannot write ${path}`, error)
      }
    },
  }
}

/**
 * Changes webhooks.yaml as it is now, whole or not at all. A file that someone saves meanwhile is read again and
 * changed as they left it. Throws `config-invalid` while the configuration is broken, and what `change` throws.
 */
export const changeWebhooks = async (
  home: Home,
  change: (text: string) => string,
): Promise<void> => {
  await withConfigLock(home, async () => {
    for (let tries = 0; tries < maxTries; tries += 1) {
      const opened = await openConfig(home)
      const { text, path } = opened.file('webhooks')
      const changed = change(text)
      if (changed === text) return
      opened.check('webhooks', changed)
      if ((await readFile(path, 'utf8').catch(() => undefined)) !== text) continue
      await opened.write('webhooks', changed)
      return
    }
    throw new DoorwardError('unavailable', 'webhooks.yaml is being written all the time', {
      hint: 'try again once the other program has finished',
    })
  })
}

const maxTries = 5

const checked = <Result>(make: () => Result): Result => {
  try {
    return make()
  } catch (error) {
    throw error instanceof ConfigError ? ofEntry(error) : error
  }
}

/** In the words of the entry: the place in a text that was never saved would tell nobody anything. */
const ofEntry = ({ problems }: ConfigError): DoorwardError => {
  const words = problems.map(
    ({ key, reason }) => `${key.replace(/^\w+(\[\d+\]|\.[\w-]+|\["[^"]*"\])\.?/, '')}: ${reason}`,
  )
  return new DoorwardError('usage', words.join('\n'), { hint: problems[0]?.hint })
}

const unusable = (what: string, error: unknown): DoorwardError =>
  new DoorwardError('home-unusable', `${what}: ${systemReason(error)}`, {
    cause: error,
    hint:
      systemCode(error) === 'ENOENT' ? 'doorward init writes a sample' : 'make it writable for you',
  })
