import { constants } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { CliKind } from '../../../shared/agents/clis.ts'
import type { Usage } from '../../../shared/api/api.ts'

/** The conversation of an agent program in its own form, as doorward carries it from one run to the next. */
export type Transcript = {
  readonly program: CliKind
  /** The program's own name of it. */
  readonly id: string
  readonly bytes: Uint8Array
  /** What the program has said of the whole conversation: tokens of codex, money of claude. */
  readonly totals?: Usage | undefined
}

/** One turn of a conversation, for the program that takes it. */
export type SessionTurn = {
  /** Undefined where the conversation begins. */
  readonly earlier: Transcript | undefined
  readonly limitBytes: number
  /** Called where the program does not go on from `earlier`. */
  readonly beginAnew: (why: string) => void
  /** Called with the conversation as it is after an answer. */
  readonly keep: (transcript: Transcript) => void
  /** Called where the program can have no conversation, with the reason. */
  readonly refuse: (why: string) => void
  /** Called where nothing can be kept, so that the next turn begins anew. */
  readonly lose: (why: string) => void
}

export const tooLong = 'its transcript was longer than session_limit'

/** Files of a run that are looked at in one folder. */
const maxEntries = 100

/**
 * The files below a folder whose paths match, part by part. An agent may have written them: no link is followed.
 */
export const findFiles = async (
  folder: string,
  [name, ...rest]: readonly (string | RegExp)[],
): Promise<string[]> => {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const matching = entries
    .filter((entry) => (name instanceof RegExp ? name.test(entry.name) : entry.name === name))
    .slice(0, maxEntries)
  if (rest.length === 0)
    return matching.filter((entry) => entry.isFile()).map((entry) => join(folder, entry.name))
  const found: string[] = []
  for (const entry of matching)
    if (entry.isDirectory()) found.push(...(await findFiles(join(folder, entry.name), rest)))
  return found
}

/** The bytes of a regular file with one name; what an agent may have put there in its place is not read. */
export const readOwnFile = async (
  path: string,
  limitBytes: number,
): Promise<Buffer | 'too-long' | undefined> => {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
  const file = await open(path, flags).catch(() => undefined)
  if (!file) return undefined
  try {
    const stats = await file.stat()
    if (!stats.isFile() || stats.nlink !== 1) return undefined
    if (stats.size > limitBytes) return 'too-long'
    const bytes = Buffer.alloc(stats.size)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0)
    return bytes.subarray(0, bytesRead)
  } catch {
    return undefined
  } finally {
    await file.close()
  }
}
