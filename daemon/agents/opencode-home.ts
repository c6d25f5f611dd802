import { symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ToolLevel } from '../../shared/agents/tools.ts'
import { getUserHome } from '../../shared/home/home.ts'
import {
  copyFiles,
  isObject,
  list,
  makeFolder,
  makeTop,
  parse,
  pick,
  type PrepareHome,
  read,
  readInstructions,
  type Settings,
  writeJson,
} from './own-home.ts'

const opencodeSettings =
  /^(\$schema|model|small_model|provider|disabled_providers|enabled_providers)$/

/*
 * OpenCode 1.18 loads plugins from `.opencode` and `opencode.json` in its folder, and in those above it up to the
 * top of a repository, whatever its variables say. Without tools it runs in a folder that it takes for a repository:
 * above that anyone may have planted some, as in /tmp.
 */
const opencodeSources = ['.opencode', 'opencode.json', 'opencode.jsonc']

export const prepareOpencode: PrepareHome = async ({ folder, cwd, env, level }) => {
  const person = getUserHome(env)
  const own = await makeFolder(folder, 'home')
  const real = env['XDG_CONFIG_HOME'] || join(person, '.config')
  const config = await makeFolder(own, '.config')
  // Other programs, such as git, keep their settings.
  for (const name of await list(real))
    if (name !== 'opencode')
      await symlink(join(real, name), join(config, name)).catch(() => undefined)
  const { OPENCODE_CONFIG: file = '', OPENCODE_CONFIG_DIR: more } = env
  const copy = async (from: string, to: string) => copyFolder(person, from, to, level)
  await copy(join(real, 'opencode'), join(config, 'opencode'))
  await copy(join(person, '.opencode'), join(own, '.opencode'))
  if (more) await copy(more, join(own, 'more'))
  const work = await makeTop(folder)
  // It leaves out instructions of the project with its configuration.
  const instructions = join(own, 'instructions.md')
  const names = ['AGENTS.md', 'CLAUDE.md', 'CONTEXT.md']
  await writeFile(instructions, await readInstructions(cwd, names))
  const settings = join(own, 'settings.json')
  await writeJson(settings, {
    snapshot: false,
    ...(await readSettings(person, file, level)),
    instructions: [instructions],
  })
  return {
    variables: {
      XDG_CONFIG_HOME: config,
      // It looks for `.opencode` there.
      OPENCODE_TEST_HOME: own,
      OPENCODE_CONFIG: settings,
      ...(more && { OPENCODE_CONFIG_DIR: join(own, 'more') }),
      OPENCODE_DISABLE_PROJECT_CONFIG: '1',
      OPENCODE_PURE: '1',
    },
    ...(level === 'none'
      ? { cwd: work }
      : {
          hidden: opencodeSources.map((name) => join(cwd, name)),
          startsBare: await findPlugin(cwd),
        }),
  }
}

/** The first folder or file, here or above, that names plugins. */
const findPlugin = async (folder: string): Promise<string | undefined> => {
  for (const name of opencodeSources) {
    const path = join(folder, name)
    const names = await list(path)
    const files = names.length > 0 ? names.map((one) => join(path, one)) : [path]
    if (names.some((one) => /^plugins?$/.test(one))) return path
    for (const file of files)
      if (/\.jsonc?$/.test(file) && /"plugins?"/.test((await read(file)) ?? '')) return file
  }
  const isTop = dirname(folder) === folder || (await list(join(folder, '.git'))).length > 0
  return isTop ? undefined : findPlugin(dirname(folder))
}

const copyFolder = async (
  person: string,
  from: string,
  to: string,
  level: ToolLevel,
): Promise<void> => {
  const names = await list(from)
  // Where these name its package for plugins, it does not install that for each run.
  await makeFolder(to, 'node_modules')
  const dependencies = { '@opencode-ai/plugin': '*' }
  await writeJson(join(to, 'package-lock.json'), { packages: { '': { dependencies } } })
  await copyFiles(from, to, /^AGENTS\.md$/)
  for (const name of names) {
    const path = join(from, name)
    if (/^(config\.json|opencode\.jsonc?)$/.test(name))
      await writeJson(join(to, name), await readSettings(person, path, level))
    // The ones that `args` can name.
    if (level === 'args' && /^(agents?|modes?)$/.test(name))
      await copyFiles(path, await makeFolder(to, name), /\.md$/)
  }
}

const readSettings = async (person: string, path: string, level: ToolLevel): Promise<Settings> => {
  // Paths of `{file:…}` are relative to the file, or to the home.
  const text = (await read(path))?.replaceAll(/\{file:(~\/|(?!\/))/g, (_, tilde: string) => {
    const folder = tilde === '' ? dirname(path) : person
    return `{file:${JSON.stringify(folder).slice(1, -1)}/`
  })
  const settings = parse('opencode', path, text)
  const { permission } = settings
  return {
    ...pick(settings, opencodeSettings),
    ...(level === 'args' && pick(settings, /^(agent|mode)$/)),
    ...(isObject(permission) && { permission: keepDenials(permission) }),
  }
}

const keepDenials = (rules: Settings): Settings =>
  Object.fromEntries(
    Object.entries(rules)
      .filter(([, rule]) => isObject(rule) || rule === 'deny')
      .map(([name, rule]) => [name, isObject(rule) ? keepDenials(rule) : rule]),
  )
