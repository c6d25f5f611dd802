import { constants } from 'node:fs'
import { access, lstat, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../../../shared/errors.ts'
import type { Home } from '../../../../shared/home/home.ts'
import { shellWord } from '../../../terminal/format.ts'
import { type Check, checksFor } from '../check.ts'

/** Decides who may access a file or folder of a home. */
type HomeRole = 'folder' | 'secret-folder' | 'secret-file' | 'config-file'

export type HomeEntry = {
  readonly path: string
  readonly role: HomeRole
  /** A folder may be a link, as to another disk, and counts as what it points to. */
  readonly is: 'file' | 'folder' | 'link' | 'other'
  readonly uid: number
  /** The nine bits of permission. */
  readonly mode: number
}

export type HomeFacts = {
  readonly root: string
  /** False where files have no permission bits. */
  readonly hasModes: boolean
  readonly uid: number | undefined
  /** Why the folder cannot be read. */
  readonly unreadable?: string
  readonly exists: boolean
  readonly entries: readonly HomeEntry[]
  readonly isWritable: boolean
  readonly freeBytes: number | undefined
}

/** Collects owners and modes of everything in a home, and changes nothing. */
export const collectHome = async (home: Home): Promise<HomeFacts> => {
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
    readEntry(home.root, 'folder'),
    readEntry(home.config, 'folder'),
    readEntry(home.logs, 'folder'),
    ...[home.run, home.tokens, home.clients].map(async (path) => readEntry(path, 'secret-folder')),
    readEntry(home.env, 'secret-file'),
    readEntry(home.apiToken, 'secret-file'),
    readEntry(home.accounts, 'secret-file'),
    ...['webhooks', 'agents', 'gateway'].map(async (name) =>
      readEntry(join(home.config, `${name}.yaml`), 'config-file'),
    ),
    ...(await filesIn(home.tokens)).map(async (path) => readEntry(path, 'secret-file')),
    ...(await filesIn(home.clients)).map(async (path) => readEntry(path, 'secret-file')),
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

const readEntry = async (path: string, role: HomeRole): Promise<HomeEntry | undefined> => {
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
    // A missing file is created when it is needed; a closed folder is reported itself.
    return undefined
  }
}

const { ok, warning, error, skipped } = checksFor('home')

const little = 100 * 1024 * 1024
const nothing = 1024 * 1024

/** Checks that only the owner can access the files of a home, and that the disk has space. */
export const checkHome = (facts: HomeFacts): Check[] => {
  if (facts.unreadable !== undefined)
    return [
      error(
        'folder',
        `${facts.root} cannot be read (${facts.unreadable})`,
        'take ownership of it, or choose another home with --home or DOORWARD_HOME',
      ),
    ]
  if (!facts.exists)
    return [warning('folder', `there is no home at ${facts.root} yet`, 'doorward init')]
  return [...checkEntries(facts), checkDisk(facts)]
}

const checkEntries = (facts: HomeFacts): Check[] => {
  const wrong = facts.entries.flatMap((entry) => findFault(entry, facts) ?? [])
  if (!facts.isWritable)
    wrong.unshift(error('folder', `${facts.root} cannot be written to`, 'make it writable for you'))
  if (!facts.hasModes) wrong.push(skipped('modes', 'files have no permission bits on this system'))
  const secrets = facts.entries.filter(({ role }) => role === 'secret-file').length
  if (wrong.length > 0) return wrong
  return [
    ok('folder', `${facts.root} is yours alone`),
    ok('modes', `${secrets} secret ${secrets === 1 ? 'file is' : 'files are'} closed to others`),
  ]
}

const findFault = (entry: HomeEntry, { root, hasModes, uid }: HomeFacts): Check | undefined => {
  const name = entry.path === root ? 'folder' : entry.path.slice(root.length + 1)
  const { path, role, is, mode } = entry
  const isFolderRole = role === 'folder' || role === 'secret-folder'
  if (isFolderRole !== (is === 'folder') && is !== 'link')
    return error(name, `${path} is not a ${isFolderRole ? 'folder' : 'file'}`, 'move it away')
  if (is === 'link')
    return role === 'secret-file'
      ? error(
          name,
          `${path} is a link: links to secrets are not followed`,
          'replace it with the file itself',
        )
      : undefined
  if (!hasModes) return undefined
  if (entry.uid !== uid)
    return error(
      name,
      `${path} belongs to another user (${entry.uid})`,
      `sudo chown ${uid} ${shellWord(path)}`,
    )
  const shown = `mode ${mode.toString(8).padStart(3, '0')}`
  if (role === 'secret-file' || role === 'secret-folder') {
    const wanted = role === 'secret-file' ? '600' : '700'
    if ((mode & 0o077) !== 0)
      return error(
        name,
        `${path} is open to other users (${shown})`,
        `chmod ${wanted} ${shellWord(path)}`,
      )
  } else if ((mode & 0o022) !== 0)
    // The configuration decides which programs run.
    return error(
      name,
      `other users can write to ${path} (${shown})`,
      `chmod ${role === 'folder' ? '700' : '600'} ${shellWord(path)}`,
    )
  else if (role === 'folder' && (mode & 0o077) !== 0)
    return warning(
      name,
      `other users can look into ${path} (${shown}); the next start closes it`,
      `chmod 700 ${shellWord(path)}`,
    )
  return undefined
}

const checkDisk = ({ freeBytes, root }: HomeFacts): Check => {
  if (freeBytes === undefined) return skipped('disk', 'the free disk space is unknown')
  const shown = `${Math.floor(freeBytes / 1024 / 1024)} MB free`
  if (freeBytes < nothing)
    return error('disk', `the disk of ${root} is full`, 'free some space: tokens cannot be saved')
  if (freeBytes < little) return warning('disk', `only ${shown}`, 'free some space')
  return ok('disk', freeBytes >= 1024 ** 3 ? `${Math.floor(freeBytes / 1024 ** 3)} GB free` : shown)
}
