import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import {
  toClaudeProject,
  toCodexPath,
  toOpencodeExport,
} from '../../../shared/agents/transcripts.ts'
import { expandTilde, getUserHome } from '../../../shared/home/home.ts'
import {
  toClaudeTerminalForm,
  toCodexTerminalForm,
  toGeminiTerminalForm,
  type ToTerminalForm,
} from './terminal-transcripts.ts'

/*
 * The conversations that agent programs keep for their owner: where `session open` puts one of doorward's, and
 * where `session close` finds it.
 */

type Env = NodeJS.ProcessEnv

/** The notes of `open` for `close`, in `run/`. */
const noteSchema = z.strictObject({
  conversation: z.string(),
  turns: z.int(),
  folder: z.string(),
  path: z.string(),
})
export type OpenNote = z.infer<typeof noteSchema>

export const toNotePath = (run: string, id: string): string =>
  join(run, `open-session-${id.slice(0, 16)}.json`)

export const readNote = async (path: string): Promise<OpenNote | undefined> => {
  try {
    return noteSchema.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch {
    return undefined
  }
}

type Left = {
  readonly conversation: string
  readonly bytes: Buffer
  readonly remove: () => Promise<void>
}

export type Store = {
  readonly pathOf: (place: {
    readonly conversation: string
    readonly folder: string
    /** A folder of doorward's, for programs that read a file. */
    readonly home: string
    readonly env: Env
  }) => string
  readonly toFile: ToTerminalForm
  /** Brings the file into the program's database. */
  readonly imported?: (path: string, folder: string, env: Env) => Promise<void>
  readonly command: (conversation: string, path: string) => readonly [string, ...string[]]
  readonly takeOut: (note: OpenNote, env: Env) => Promise<Left | undefined>
}

const readFileOf = async ({ conversation, path }: OpenNote): Promise<Left | undefined> => {
  const bytes = await readFile(path).catch(() => undefined)
  return bytes && { conversation, bytes, remove: async () => rm(path, { force: true }) }
}

/** An entry of PATH such as `node_modules/.bin` would find programs that the checkout brings. */
export const withSafePath = (env: Env): Env => ({
  ...env,
  PATH: (env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => isAbsolute(folder))
    .join(delimiter),
})

const run = async (args: readonly string[], cwd: string, env: Env) =>
  promisify(execFile)('opencode', args, {
    cwd,
    env: withSafePath(env),
    maxBuffer: 64 * 1024 ** 2,
  })

const geminiHome = (env: Env): string =>
  join(expandTilde(env['GEMINI_CLI_HOME'] || getUserHome(env)), '.gemini')

/**
 * Gemini CLI gives a conversation from a file a new name and a new file, whose first message says which file it was.
 * The newest counts where it was read several times.
 */
const findGemini = async (note: OpenNote, env: Env): Promise<Left | undefined> => {
  const projects = join(geminiHome(env), 'tmp')
  const found: { readonly path: string; readonly at: number; readonly bytes: Buffer }[] = []
  for (const project of await readdir(projects).catch(() => [])) {
    const chats = join(projects, project, 'chats')
    for (const name of await readdir(chats).catch(() => [])) {
      const path = join(chats, name)
      const bytes = await readFile(path).catch(() => undefined)
      if (!bytes || !isImportOf(bytes, note.path)) continue
      found.push({ path, bytes, at: (await stat(path)).mtimeMs })
    }
  }
  const [newest] = found.toSorted((one, other) => other.at - one.at)
  const bytes = newest?.bytes ?? (await readFile(note.path).catch(() => undefined))
  if (!bytes) return undefined
  const remove = async () => {
    for (const { path } of [note, ...found]) await rm(path, { force: true })
  }
  return { conversation: note.conversation, bytes, remove }
}

/** Whether a chat of Gemini CLI was read from this file. */
const isImportOf = (chat: Buffer, path: string): boolean =>
  chat
    .toString('utf8')
    .split('\n', 10)
    .some((line) => {
      try {
        const message: unknown = JSON.parse(line)
        return importSchema.parse(message).content === `Imported session from ${path}`
      } catch {
        return false
      }
    })

const importSchema = z.object({ type: z.literal('info'), content: z.string() })

export const programStores: Readonly<Record<string, Store | undefined>> = {
  claude: {
    pathOf: ({ conversation, folder, env }) =>
      join(
        env['CLAUDE_CONFIG_DIR'] || join(getUserHome(env), '.claude'),
        'projects',
        toClaudeProject(folder),
        `${conversation}.jsonl`,
      ),
    toFile: toClaudeTerminalForm,
    command: (conversation) => ['claude', '--resume', conversation],
    takeOut: readFileOf,
  },
  codex: {
    pathOf: ({ conversation, env }) =>
      join(env['CODEX_HOME'] || join(getUserHome(env), '.codex'), ...toCodexPath(conversation)),
    toFile: toCodexTerminalForm,
    command: (conversation) => ['codex', 'resume', conversation],
    takeOut: readFileOf,
  },
  gemini: {
    pathOf: ({ conversation, home }) => join(home, `session-${conversation}.jsonl`),
    toFile: toGeminiTerminalForm,
    command: (_, path) => ['gemini', '--session-file', path],
    takeOut: findGemini,
  },
  opencode: {
    pathOf: ({ conversation, home }) => join(home, `session-${conversation}.json`),
    toFile: toOpencodeExport,
    imported: async (path, folder, env) => {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      await run(['import', path], folder, env)
    },
    command: (conversation) => ['opencode', '--session', conversation],
    takeOut: async ({ conversation, folder, path }, env) => {
      const exported = await run(['export', conversation], folder, env).catch(() => undefined)
      const remove = async () => {
        await rm(path, { force: true })
        await run(['session', 'delete', conversation], folder, env).catch(() => undefined)
      }
      return exported && { conversation, bytes: Buffer.from(exported.stdout), remove }
    },
  },
}

/** Removes a conversation from its program's own store. */
export const removeOpened = async (program: string, note: OpenNote): Promise<void> => {
  const left = await programStores[program]?.takeOut(note, process.env)
  await left?.remove()
}
