import { constants } from 'node:fs'
import { access, lstat, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'

/** What a file or folder of a home is for, which says who may reach it. */
export type HomeRole = 'folder' | 'secret-folder' | 'secret-file' | 'config-file'

export type HomeEntry = {
  readonly path: string
  readonly role: HomeRole
  /** A link in the place of a file counts; a folder may be one, as a home may lie on another disk. */
  readonly is: 'file' | 'folder' | 'link' | 'other'
  readonly uid: number
  /** The nine bits of permission. */
  readonly mode: number
}

export type HomeFacts = {
  readonly root: string
  /** False where the system has no modes that say who may read a file. */
  readonly hasModes: boolean
  readonly uid: number | undefined
  /** Undefined when there is no home yet; else why it cannot be looked at. */
  readonly unreadable?: string
  readonly exists: boolean
  readonly entries: readonly HomeEntry[]
  readonly isWritable: boolean
  readonly freeBytes: number | undefined
}

/** Looks at owners and modes of everything in a home, and changes nothing. */
export const lookAtHome = async (home: Home): Promise<HomeFacts> => {
  const facts = {
    root: home.root,
    hasModes: process.platform !== 'win32',
    uid: process.getuid?.(),
    entries: [],
    isWritable: false,
    freeBytes: undefined,
  }
  try {
    await stat(home.root)
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT') return { ...facts, exists: false }
    return { ...facts, exists: true, unreadable: code ?? 'unknown reason' }
  }
  const entries = await Promise.all([
    entryOf(home.root, 'folder'),
    entryOf(home.config, 'folder'),
    entryOf(home.logs, 'folder'),
    ...[home.run, home.tokens, home.clients].map(async (path) => entryOf(path, 'secret-folder')),
    entryOf(home.env, 'secret-file'),
    entryOf(home.apiToken, 'secret-file'),
    ...['webhooks', 'agents', 'gateway'].map(async (name) =>
      entryOf(join(home.config, `${name}.yaml`), 'config-file'),
    ),
    ...(await filesIn(home.tokens)).map(async (path) => entryOf(path, 'secret-file')),
    ...(await filesIn(home.clients)).map(async (path) => entryOf(path, 'secret-file')),
  ])
  return {
    ...facts,
    exists: true,
    entries: entries.filter((entry) => entry !== undefined),
    isWritable: await access(home.root, constants.W_OK | constants.X_OK).then(
      () => true,
      () => false,
    ),
    freeBytes: await statfs(home.root).then(
      ({ bavail, bsize }) => bavail * bsize,
      () => undefined,
    ),
  }
}

const filesIn = async (folder: string): Promise<string[]> => {
  const names = await readdir(folder).catch(() => [])
  return names.filter((name) => name.includes('.json')).map((name) => join(folder, name))
}

const entryOf = async (path: string, role: HomeRole): Promise<HomeEntry | undefined> => {
  try {
    const isFolder = role === 'folder' || role === 'secret-folder'
    const found = await (isFolder ? stat : lstat)(path)
    const is = found.isFile()
      ? 'file'
      : found.isDirectory()
        ? 'folder'
        : found.isSymbolicLink()
          ? 'link'
          : 'other'
    return { path, role, is, uid: found.uid, mode: found.mode & 0o777 }
  } catch {
    // What is missing is made when it is needed; a folder that is closed to us is told of itself.
    return undefined
  }
}
