import { constants } from 'node:fs'
import { copyFile, mkdir, open, readdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { parse as parseToml, stringify as stringifyToml } from 'smol-toml'
import { agentClis, type CliKind } from '../../shared/agents/clis.ts'
import type { ToolLevel } from '../../shared/agents/tools.ts'
import { expandTilde, getUserHome } from '../../shared/home/home.ts'
import { parseJson } from '../util/payload-path.ts'
import { toAgentError } from './answer.ts'

/*
 * The configuration that an agent program gets for one run. It has what the owner chose of models, providers
 * and logins. Everything that starts a program or brings a tool (servers, hooks, notify, plugins, commands) stays
 * away: only the entry of the agent grants tools. Keys are allowed by name, as the next version of a program has
 * new ways to start something.
 */

export type HomeRequest = {
  /** The folder of the run, which its sandbox shows. */
  readonly folder: string
  readonly cwd: string
  /** The variables of the agent, which may name other folders of the owner's. */
  readonly env: Readonly<Record<string, string>>
  readonly level: ToolLevel
}

export type OwnHome = {
  /** They override those of the agent's entry. */
  readonly variables: Readonly<Record<string, string>>
  readonly args?: readonly string[]
  /** The place where it runs instead. */
  readonly cwd?: string | undefined
  /** Files and folders of the project that the sandbox hides: no flag keeps the program from obeying them. */
  readonly hidden?: readonly string[]
  /** One of them that starts something, for which it is not run without a sandbox. */
  readonly startsBare?: string | undefined
}

export type PrepareHome = (request: HomeRequest) => Promise<OwnHome>

export type Settings = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is Settings =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The values of an object whose names match; nothing of anything else. */
export const pick = (value: unknown, names: RegExp): Settings =>
  isObject(value)
    ? Object.fromEntries(Object.entries(value).filter(([name]) => names.test(name)))
    : {}

export const read = async (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch(() => undefined)

export const list = async (folder: string): Promise<string[]> => readdir(folder).catch(() => [])

export const makeFolder = async (...parts: readonly string[]): Promise<string> => {
  const folder = join(...parts)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return folder
}

/**
 * The empty working folder of a run, as the top of a repository: programs look for instructions and settings in all
 * folders above up to that, and anyone may write to those above, such as /tmp.
 */
export const makeTop = async (folder: string): Promise<string> => {
  const work = join(folder, 'work')
  await makeFolder(work, '.git', 'objects')
  await makeFolder(work, '.git', 'refs')
  await writeFile(join(work, '.git', 'HEAD'), 'ref: refs/heads/main\n')
  return work
}

export const writeJson = async (path: string, settings: Settings): Promise<void> =>
  writeFile(path, JSON.stringify(settings), { mode: 0o600 })

export const copyFiles = async (from: string, to: string, names: RegExp): Promise<void> => {
  for (const name of await list(from))
    if (names.test(name)) await copyFile(join(from, name), join(to, name)).catch(() => undefined)
}

/** The settings in a file that may not exist. The program itself would refuse one that cannot be read. */
export const parse = (kind: CliKind, path: string, text: string | undefined): Settings => {
  if (text === undefined || text.trim() === '') return {}
  const settings = path.endsWith('.toml') ? toTable(text) : parseJson(withoutComments(text))
  if (isObject(settings)) return settings
  const message = `${agentClis[kind].program} was not run: its configuration ${path} cannot be parsed`
  throw toAgentError('agent-failed', message, { hint: 'fix that file' })
}

const toTable = (text: string): unknown => {
  try {
    return parseToml(text)
  } catch {
    return undefined
  }
}

/** The variables of a `.env` with these names that the agent does not have. */
const readVariables = async (
  path: string,
  env: HomeRequest['env'],
  isWanted: (name: string) => boolean,
): Promise<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(parseEnv((await read(path)) ?? '')).flatMap(([name, value]) =>
      value !== undefined && isWanted(name) && env[name] === undefined ? [[name, value]] : [],
    ),
  )

/** JSON of a text with comments and trailing commas. Strings match first: a URL in one is no comment. */
const withoutComments = (text: string): string =>
  text
    .replaceAll(/("(?:[^"\\]|\\.)*")|\/\/[^\n]*|\/\*[^]*?\*\//g, keepString)
    .replaceAll(/("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])/g, keepString)

const keepString = (_: string, quoted?: string): string => quoted ?? ''

const claudeSettings =
  /^(model|modelOverrides|availableModels|fallbackModel|effortLevel|alwaysThinkingEnabled|apiKeyHelper|aws\w+|gcp\w+|forceLogin\w+)$/
const claudeVariables =
  /^(ANTHROPIC_|AWS_|AZURE_|GOOGLE_|GCLOUD_|CLOUD_ML_|VERTEX_|CLAUDE_CODE_(USE|SKIP)_|CLAUDE_CODE_(OAUTH_TOKEN|EFFORT_LEVEL|MAX_OUTPUT_TOKENS|API_KEY_HELPER_TTL_MS)$|MAX_THINKING_TOKENS$|API_TIMEOUT_MS$)/

/** Its other settings are left out by flags. A home of its own would hide a login in the keychain of macOS. */
export const prepareClaude: PrepareHome = async ({ folder, env }) => {
  const real = env['CLAUDE_CONFIG_DIR'] || join(getUserHome(env), '.claude')
  const path = join(real, 'settings.json')
  const settings = parse('claude', path, await read(path))
  const own = join(folder, 'settings.json')
  await writeJson(own, {
    ...pick(settings, claudeSettings),
    env: pick(settings['env'], claudeVariables),
  })
  return { variables: {}, args: ['--settings', own] }
}

const codexInstructions = ['AGENTS.override.md', 'AGENTS.md']
const codexFiles = /^installation_id$/
const codexSettings =
  /^(model(_\w+)?|personality|service_tier|oss_provider|chatgpt_base_url|openai_base_url|forced_\w+|instructions|developer_instructions|profile)$/

/** Features that bring tools, programs, or connectors of the account. Flags in `args` override them. */
const codexFeatures = Object.fromEntries(
  [
    ['hooks', 'plugins', 'remote_plugin', 'apps', 'tool_suggest', 'skill_mcp_dependency_install'],
    ['browser_use', 'computer_use', 'image_generation'],
  ].flatMap((names) => names.map((name) => [name, false])),
)

export const prepareCodex: PrepareHome = async ({ folder, cwd, env }) => {
  const real = env['CODEX_HOME'] || join(getUserHome(env), '.codex')
  const own = await makeFolder(folder, 'home', '.codex')
  await copyFiles(real, own, codexFiles)
  const load = async (name: string) => {
    const path = join(real, name)
    return restrictCodex(parse('codex', path, await read(path)), real, own)
  }
  // Each profile has a file.
  for (const name of await list(real))
    if (name.endsWith('.config.toml')) await writeToml(join(own, name), await load(name))
  const settings = await load('config.toml')
  const projects = await distrust(cwd)
  // It reads no instructions of a project that it does not trust.
  const texts = [
    await readInstructions(real, codexInstructions),
    await readInstructions(cwd, codexInstructions),
  ]
  await writeFile(join(own, 'AGENTS.md'), texts.join('\n\n').trim(), { mode: 0o600 })
  await writeToml(join(own, 'config.toml'), {
    ...settings,
    // An entry of the keyring belongs to one home.
    cli_auth_credentials_store: 'file',
    features: codexFeatures,
    projects,
  })
  const providers = JSON.stringify(settings['model_providers'] ?? {})
  const isKey = (name: string) =>
    /^(OPENAI_|CODEX_API_KEY$)/.test(name) || providers.includes(`"${name}"`)
  const variables = await readVariables(join(real, '.env'), env, isKey)
  return { variables: { ...variables, CODEX_HOME: own } }
}

const writeToml = async (path: string, settings: Settings): Promise<void> =>
  writeFile(path, stringifyToml(settings), { mode: 0o600 })

const restrictCodex = async (settings: Settings, from: string, to: string): Promise<Settings> => {
  const kept: Record<string, unknown> = pick(settings, codexSettings)
  for (const name of ['model_catalog_json', 'model_instructions_file']) {
    const path = kept[name]
    if (typeof path !== 'string') continue
    kept[name] = join(to, name)
    await copyFile(resolve(from, expandTilde(path)), join(to, name)).catch(() => undefined)
  }
  const { profiles } = settings
  if (isObject(profiles))
    kept['profiles'] = Object.fromEntries(
      Object.entries(profiles).map(([name, profile]) => [name, pick(profile, codexSettings)]),
    )
  return kept
}

/** The part that Codex reads of a project. */
const maxInstructionBytes = 32 * 1024

/** The text of the first of these files that is there. */
export const readInstructions = async (
  folder: string,
  names: readonly string[],
): Promise<string> => {
  for (const name of names) {
    // An agent may have left a link to a file that its sandbox hides.
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    const file = await open(join(folder, name), flags).catch(() => undefined)
    if (!file) continue
    try {
      const bytes = Buffer.alloc(maxInstructionBytes)
      const { bytesRead } = await file.read(bytes, 0, bytes.length)
      return bytes.toString('utf8', 0, bytesRead)
    } catch {
      // A folder of that name.
    } finally {
      await file.close()
    }
  }
  return ''
}

/** With a writable sandbox Codex trusts a folder of which it knows nothing, and obeys its `.codex`. */
const distrust = async (cwd: string): Promise<Settings> => {
  const paths = [cwd, await realpath(cwd).catch(() => cwd)]
  return Object.fromEntries(paths.map((path) => [path, { trust_level: 'untrusted' }]))
}

const geminiFiles =
  /^(oauth_creds\.json|google_accounts\.json|gemini-credentials\.json|installation_id|.*oauth.*\.json)$/
const geminiReads = ['list_directory', 'read_file', 'read_many_files', 'glob', 'grep_search']
/** The tools of Gemini CLI at each level. */
const geminiTools = {
  none: [],
  read: geminiReads,
  write: [...geminiReads, 'replace', 'write_file'],
} as const

/**
 * It also writes each prompt into a history in its home, and adds a file of its folder for each path after an @,
 * and no flag prevents that: without tools it runs in an empty folder.
 */
export const prepareGemini: PrepareHome = async ({ folder, cwd, env, level }) => {
  const real = join(env['GEMINI_CLI_HOME'] || getUserHome(env), '.gemini')
  const own = await makeFolder(folder, 'home', '.gemini')
  await copyFiles(real, own, geminiFiles)
  const path = join(real, 'settings.json')
  const settings = parse('gemini', path, await read(path))
  await writeJson(join(own, 'settings.json'), restrictGemini(settings, level))
  const work = await makeTop(folder)
  // It looks for variables in all folders above, whatever is a repository.
  await writeFile(join(folder, '.env'), '')
  const named = isObject(settings['context']) ? settings['context']['fileName'] : undefined
  const names = [named ?? 'GEMINI.md'].flat().filter((name) => typeof name === 'string')
  const texts = [await readInstructions(real, names)]
  if (level === 'none') texts.push(await readInstructions(cwd, names))
  const text = texts.join('\n\n').trim()
  if (text !== '') await writeFile(join(own, basename(names[0] ?? 'GEMINI.md')), text)
  const isKey = (name: string) => /^(GEMINI_(API_KEY|MODEL)|GOOGLE_\w+)$/.test(name)
  const variables = await readVariables(join(real, '.env'), env, isKey)
  return {
    variables: { ...variables, GEMINI_CLI_HOME: join(folder, 'home') },
    ...(level === 'none' && { cwd: work }),
  }
}

/** One attempt, no telemetry, and no tools unless granted. */
const restrictGemini = (
  { security, context, tools, ...settings }: Settings,
  level: ToolLevel,
): Settings => ({
  ...pick(settings, /^(model|modelConfigs|billing|privacy)$/),
  security: pick(security, /^auth$/),
  context: pick(context, /^(fileName|fileFiltering)$/),
  general: { maxAttempts: 1, checkpointing: { enabled: false } },
  telemetry: { enabled: false },
  // The owner's limits stay.
  tools: {
    ...pick(tools, /^(core|exclude)$/),
    ...(level !== 'args' && { core: geminiTools[level] }),
  },
})
