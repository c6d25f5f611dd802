import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { z } from 'zod'
import {
  toClaudeProject,
  toCodexPath,
  toOpencodeExport,
} from '../../../shared/agents/transcripts.ts'
import { expandTilde, getUserHome } from '../../../shared/home/home.ts'

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

type Store = {
  readonly pathOf: (place: {
    readonly conversation: string
    readonly folder: string
    /** A folder of doorward's, for programs that read a file. */
    readonly home: string
    readonly env: Env
  }) => string
  readonly toFile?: (bytes: Buffer, folder: string) => string
  /** Brings the file into the program's database. */
  readonly imported?: (path: string, folder: string) => Promise<void>
  readonly command: (conversation: string, path: string) => readonly [string, ...string[]]
  readonly takeOut: (note: OpenNote, env: Env) => Promise<Left | undefined>
}

const readFileOf = async ({ conversation, path }: OpenNote): Promise<Left | undefined> => {
  const bytes = await readFile(path).catch(() => undefined)
  return bytes && { conversation, bytes, remove: async () => rm(path, { force: true }) }
}

const run = async (args: readonly string[], cwd: string) =>
  promisify(execFile)('opencode', args, { cwd, maxBuffer: 64 * 1024 ** 2 })

const geminiHome = (env: Env): string =>
  join(expandTilde(env['GEMINI_CLI_HOME'] || getUserHome(env)), '.gemini')

/** Gemini CLI makes a new file for a conversation that it took from another. */
const findGemini = async (note: OpenNote, env: Env): Promise<Left | undefined> => {
  const projects = join(geminiHome(env), 'tmp')
  const startedAt = (await stat(note.path).catch(() => undefined))?.mtimeMs ?? 0
  let newest: { readonly path: string; readonly at: number } | undefined
  for (const project of await readdir(projects).catch(() => [])) {
    const root = await readFile(join(projects, project, '.project_root'), 'utf8').catch(() => '')
    if (root.trim() !== note.folder) continue
    const chats = join(projects, project, 'chats')
    for (const name of await readdir(chats).catch(() => [])) {
      const { mtimeMs: at, size } = await stat(join(chats, name))
      // Beside it there is a file with the last question alone.
      if (at >= startedAt && size > 0 && at >= (newest?.at ?? 0))
        newest = { path: join(chats, name), at }
    }
  }
  const path = newest?.path ?? note.path
  const bytes = await readFile(path).catch(() => undefined)
  if (!bytes) return undefined
  const remove = async () => {
    await rm(note.path, { force: true })
    if (newest) await rm(newest.path, { force: true })
  }
  return { conversation: note.conversation, bytes, remove }
}

export const programStores: Readonly<Record<string, Store | undefined>> = {
  claude: {
    pathOf: ({ conversation, folder, env }) =>
      join(
        env['CLAUDE_CONFIG_DIR'] || join(getUserHome(env), '.claude'),
        'projects',
        toClaudeProject(folder),
        `${conversation}.jsonl`,
      ),
    command: (conversation) => ['claude', '--resume', conversation],
    takeOut: readFileOf,
  },
  codex: {
    pathOf: ({ conversation, env }) =>
      join(env['CODEX_HOME'] || join(getUserHome(env), '.codex'), ...toCodexPath(conversation)),
    command: (conversation) => ['codex', 'resume', conversation],
    takeOut: readFileOf,
  },
  gemini: {
    pathOf: ({ conversation, home }) => join(home, `session-${conversation}.jsonl`),
    command: (_, path) => ['gemini', '--session-file', path],
    takeOut: findGemini,
  },
  opencode: {
    pathOf: ({ conversation, home }) => join(home, `session-${conversation}.json`),
    toFile: (bytes, folder) => toOpencodeExport(bytes, folder),
    imported: async (path, folder) => {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      await run(['import', path], folder)
    },
    command: (conversation) => ['opencode', '--session', conversation],
    takeOut: async ({ conversation, folder, path }) => {
      const exported = await run(['export', conversation], folder).catch(() => undefined)
      const remove = async () => {
        await rm(path, { force: true })
        await run(['session', 'delete', conversation], folder).catch(() => undefined)
      }
      return exported && { conversation, bytes: Buffer.from(exported.stdout), remove }
    },
  },
}
