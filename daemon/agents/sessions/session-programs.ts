import { randomUUID } from 'node:crypto'
import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { agentClis, type CliKind } from '../../../shared/agents/clis.ts'
import {
  toClaudeProject,
  toCodexPath,
  toOpencodeExport,
} from '../../../shared/agents/transcripts.ts'
import { parseJson, textAt } from '../../util/payload-path.ts'
import { type CliOutput, parseJsonLines, parseLastDocument } from '../cli-output.ts'
import type { Transcript } from './transcript.ts'

/*
 * How each agent program goes on with a conversation from one file in a home and a folder that are new for each run.
 * Tried with Claude Code 2.1.332, Codex 0.171.0, Gemini CLI 0.61.0 and OpenCode 1.18.33.
 */

/** The folders of a run. */
export type SessionPlace = { readonly folder: string; readonly cwd: string }

export type SessionProgram = {
  /** Flags of the preset that keep nothing. */
  readonly without: readonly string[]
  /** The name of a new conversation, where its program lets us choose it. */
  readonly newId?: () => string
  readonly begin: (id: string) => readonly string[]
  readonly resume: (id: string) => readonly string[]
  /** Flags in `args` that choose a conversation themselves. */
  readonly chosenBy: readonly string[]
  /** By which the program keeps its conversations in the folder of the run. */
  readonly variables?: (folder: string) => Readonly<Record<string, string>>
  /** The place at which the program looks for the conversation. */
  readonly pathOf: (id: string, place: SessionPlace) => string
  readonly args?: (path: string) => readonly string[]
  /** Commands of the program before and after a run, where it keeps a database. */
  readonly importFrom?: (path: string) => readonly string[]
  readonly exportOf?: (id: string) => readonly string[]
  /** The conversation for another folder. Throws where it is damaged. */
  readonly toFile?: (bytes: Uint8Array, place: SessionPlace) => string | Uint8Array
  /** The name of the conversation in what the program printed. */
  readonly idOf: (output: CliOutput) => string | undefined
  /** The parts of the path of its file below the folder of the run. */
  readonly found?: (id: string) => readonly (string | RegExp)[]
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const any = /^/

export const sessionPrograms: Readonly<Record<CliKind, SessionProgram | undefined>> = {
  claude: {
    without: ['--no-session-persistence'],
    newId: randomUUID,
    begin: (id) => ['--session-id', id],
    resume: (id) => ['--resume', id],
    chosenBy: ['--resume', '-r', '--continue', '-c', '--session-id', '--no-session-persistence'],
    variables: (folder) => ({ CLAUDE_CONFIG_DIR: join(folder, 'login') }),
    pathOf: (id, { folder, cwd }) =>
      join(folder, 'login', 'projects', toClaudeProject(cwd), `${id}.jsonl`),
    idOf: ({ stdout }) => {
      const document = parseJson(stdout) ?? parseJsonLines(stdout)
      const result = [document].flat().findLast((item) => textAt(item, 'type') === 'result')
      return toId(textAt(result, 'session_id'))
    },
    found: (id) => ['login', 'projects', any, `${id}.jsonl`],
  },
  codex: {
    without: ['--ephemeral'],
    begin: () => [],
    resume: (id) => ['resume', id],
    chosenBy: ['resume', 'fork', '--ephemeral'],
    pathOf: (id, { folder }) => join(folder, 'home', '.codex', ...toCodexPath(id)),
    idOf: ({ stdout }) =>
      toId(
        textAt(
          parseJsonLines(stdout).find((line) => textAt(line, 'type') === 'thread.started'),
          'thread_id',
        ),
      ),
    found: (id) => [
      'home',
      '.codex',
      'sessions',
      any,
      any,
      any,
      new RegExp(`^rollout-[\\dT-]+-${id}\\.jsonl$`),
    ],
  },
  gemini: {
    without: [],
    begin: () => [],
    resume: () => [],
    chosenBy: ['--resume', '-r', '--session-file', '--session-id'],
    pathOf: (_, { folder }) => join(folder, 'session.jsonl'),
    args: (path) => ['--session-file', path],
    idOf: ({ stdout, stderr }) =>
      toId(textAt(parseLastDocument(stdout) ?? parseLastDocument(stderr), 'session_id')),
    // It also makes a file with the last turn alone.
    found: (id) => [
      'home',
      '.gemini',
      'tmp',
      any,
      'chats',
      new RegExp(`^session-[\\dT-]+-${id.slice(0, 8)}\\.jsonl$`),
    ],
  },
  opencode: {
    without: [],
    begin: () => [],
    resume: (id) => ['--session', id],
    chosenBy: ['--session', '-s', '--continue', '-c'],
    variables: (folder) => ({ OPENCODE_DB: join(folder, 'session.db') }),
    pathOf: (_, { folder }) => join(folder, 'session.json'),
    importFrom: (path) => [agentClis.opencode.program, 'import', path],
    exportOf: (id) => [agentClis.opencode.program, 'export', id],
    toFile: (bytes, { cwd }) => toOpencodeExport(bytes, cwd),
    idOf: ({ stdout }) => {
      const [first] = parseJsonLines(stdout)
      const id = textAt(first, 'sessionID')
      return id !== undefined && /^ses_\w{10,60}$/.test(id) ? id : undefined
    },
  },
  llm: undefined,
}

/** It becomes a part of a path and of a pattern, and comes from the program. */
const toId = (text: string | undefined): string | undefined =>
  text !== undefined && uuid.test(text) ? text : undefined

/** Puts a conversation where its program looks for it; returns that path. Throws where it cannot be put there. */
export const placeTranscript = async (
  { id, bytes }: Transcript,
  { pathOf, toFile }: Pick<SessionProgram, 'pathOf' | 'toFile'>,
  { folder, cwd }: SessionPlace,
): Promise<string> => {
  const place = { folder, cwd: await realpath(cwd) }
  const path = pathOf(id, place)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeFile(path, toFile?.(bytes, place) ?? bytes, { mode: 0o600, flag: 'wx' })
  return path
}
