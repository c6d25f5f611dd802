import { join } from 'node:path'
import type { CliKind } from '../../../shared/agents/clis.ts'
import { getUserHome } from '../../../shared/home/home.ts'

/*
 * What each agent program must have of its own to be logged in: nothing else of a person's home is in the
 * sandbox. Histories, sessions, instructions and servers of tools are left out.
 */

export type LoginFiles = {
  /** Folders that it writes to: empty, but for what follows, and in memory. */
  readonly folders: readonly string[]
  readonly read: readonly string[]
  /** Logins whose tokens the program renews: a renewed token that is lost ends the login. */
  readonly write: readonly string[]
  /** A file of which it gets a copy with these keys only. */
  readonly partial?: { readonly path: string; readonly keys: readonly string[] }
}

const named = (env: NodeJS.ProcessEnv, name: string, ...path: readonly string[]): string =>
  env[name] || join(getUserHome(env), ...path)

const inFolder = (folder: string, ...names: readonly string[]): string[] =>
  names.map((name) => join(folder, name))

const none: LoginFiles = { folders: [], read: [], write: [] }

const loginFiles: Readonly<Partial<Record<CliKind, (env: NodeJS.ProcessEnv) => LoginFiles>>> = {
  claude: (env) => {
    const folder = named(env, 'CLAUDE_CONFIG_DIR', '.claude')
    return {
      folders: [folder],
      read: [],
      write: inFolder(folder, '.credentials.json'),
      partial: {
        path: join(env['CLAUDE_CONFIG_DIR'] || getUserHome(env), '.claude.json'),
        // `primaryApiKey` is the login of the console. The rest has projects, histories and MCP servers.
        keys: ['oauthAccount', 'primaryApiKey', 'customApiKeyResponses', 'hasCompletedOnboarding'],
      },
    }
  },
  codex: (env) => {
    const folder = named(env, 'CODEX_HOME', '.codex')
    return {
      folders: [folder],
      read: inFolder(folder, 'config.toml', 'AGENTS.md'),
      write: inFolder(folder, 'auth.json'),
    }
  },
  opencode: (env) => {
    const config = join(named(env, 'XDG_CONFIG_HOME', '.config'), 'opencode')
    const data = join(named(env, 'XDG_DATA_HOME', '.local', 'share'), 'opencode')
    const cache = join(named(env, 'XDG_CACHE_HOME', '.cache'), 'opencode')
    const state = join(named(env, 'XDG_STATE_HOME', '.local', 'state'), 'opencode')
    return {
      folders: [config, data, cache, state],
      read: [
        ...inFolder(config, 'opencode.json', 'opencode.jsonc', 'config.json', 'AGENTS.md'),
        // Packages of providers that it has installed.
        ...inFolder(cache, 'node_modules', 'packages'),
        ...[env['OPENCODE_CONFIG'], env['OPENCODE_CONFIG_DIR']].flatMap((path) => path || []),
      ],
      write: inFolder(data, 'auth.json'),
    }
  },
  llm: (env) => {
    const config = join(named(env, 'XDG_CONFIG_HOME', '.config'), 'io.datasette.llm')
    const folder = env['LLM_USER_PATH'] || config
    return {
      folders: [folder],
      read: inFolder(
        folder,
        'keys.json',
        'default_model.txt',
        'aliases.json',
        'extra-openai-models.yaml',
      ),
      write: [],
    }
  },
}

/** The files of a login, by the environment of the agent; none where its home is a copy, made for each run. */
export const loginFilesOf = (kind: CliKind, env: NodeJS.ProcessEnv): LoginFiles =>
  loginFiles[kind]?.(env) ?? none
