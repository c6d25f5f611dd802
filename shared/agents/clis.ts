import { join } from 'node:path'
import { getUserHome } from '../home/home.ts'

/*
 * Known agent programs: their names, how to install them, and where they store state.
 * `daemon/agents/cli-presets.ts` has how they run.
 */

/** The kinds of agent that run the program of that name. */
export const cliKinds = ['claude', 'codex', 'gemini', 'opencode', 'llm'] as const
export type CliKind = (typeof cliKinds)[number]

export type AgentCli = {
  readonly name: string
  readonly program: string
  readonly install: string
  /** Flags that would change the output format: refused in `args`. */
  readonly ownFlags: readonly string[]
  /** Flags in `args` that give it tools. */
  readonly toolFlags: readonly string[]
  /** Folders and files with settings, logins and histories: defaults, and those that a variable names. */
  readonly stateFolders: (env: NodeJS.ProcessEnv) => readonly string[]
}

const inHome =
  (...names: readonly string[]) =>
  (env: NodeJS.ProcessEnv): string[] =>
    names.map((name) => join(getUserHome(env), name))

/** `XDG_…_HOME`, or its default in the XDG Base Directory Specification. */
const xdg = (env: NodeJS.ProcessEnv, kind: 'CONFIG' | 'DATA' | 'STATE' | 'CACHE'): string =>
  env[`XDG_${kind}_HOME`] ||
  join(
    getUserHome(env),
    { CONFIG: '.config', DATA: '.local/share', STATE: '.local/state', CACHE: '.cache' }[kind],
  )

const named = (env: NodeJS.ProcessEnv, ...names: readonly string[]): string[] =>
  names.flatMap((name) => env[name] || [])

export const agentClis: Readonly<Record<CliKind, AgentCli>> = {
  // https://code.claude.com/docs/en/cli-reference
  claude: {
    name: 'Claude Code',
    program: 'claude',
    install: 'npm install -g @anthropic-ai/claude-code',
    ownFlags: ['--output-format', '--input-format'],
    toolFlags: ['--tools', '--allowedTools', '--allowed-tools', '--dangerously-skip-permissions'],
    stateFolders: (env) => [
      ...inHome('.claude', '.claude.json', 'Library/Caches/claude-cli-nodejs')(env),
      join(xdg(env, 'CACHE'), 'claude-cli-nodejs'),
      ...named(env, 'CLAUDE_CONFIG_DIR'),
    ],
  },
  // https://developers.openai.com/codex/cli
  codex: {
    name: 'Codex',
    program: 'codex',
    install: 'npm install -g @openai/codex',
    ownFlags: ['--json'],
    toolFlags: [
      '-s',
      '--sandbox',
      '--full-auto',
      '--approve-for-me',
      '--dangerously-bypass-approvals-and-sandbox',
      '--enable',
    ],
    stateFolders: (env) => [...inHome('.codex')(env), ...named(env, 'CODEX_HOME')],
  },
  // https://geminicli.com/docs/cli/headless
  gemini: {
    name: 'Gemini CLI',
    program: 'gemini',
    install: 'npm install -g @google/gemini-cli',
    ownFlags: ['--output-format', '-o'],
    toolFlags: ['-y', '--yolo', '--approval-mode', '--allowed-tools', '--policy', '--admin-policy'],
    stateFolders: (env) => [
      ...inHome('.gemini')(env),
      ...named(env, 'GEMINI_CLI_HOME').map((folder) => join(folder, '.gemini')),
    ],
  },
  // https://opencode.ai/docs/cli
  opencode: {
    name: 'OpenCode',
    program: 'opencode',
    install: 'npm install -g opencode-ai',
    ownFlags: ['--format'],
    toolFlags: ['--auto', '--agent'],
    stateFolders: (env) =>
      (['DATA', 'STATE', 'CACHE', 'CONFIG'] as const).map((kind) =>
        join(xdg(env, kind), 'opencode'),
      ),
  },
  // https://llm.datasette.io/en/stable/logging.html
  llm: {
    name: 'llm',
    program: 'llm',
    install: 'pipx install llm',
    ownFlags: ['--log'],
    toolFlags: ['-T', '--tool', '--functions'],
    stateFolders: (env) => [
      join(xdg(env, 'CONFIG'), 'io.datasette.llm'),
      ...inHome('Library/Application Support/io.datasette.llm')(env),
      ...named(env, 'LLM_USER_PATH'),
    ],
  },
}

/** True for a kind of this list. */
export const isCliKind = (kind: string): kind is CliKind =>
  (cliKinds as readonly string[]).includes(kind)
