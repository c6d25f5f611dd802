import { constants } from 'node:fs'
import { access, lstat, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { shellWord } from '../../terminal/format.ts'
import { type Check, checksFor } from '../../../shared/api/checks.ts'

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

const { ok, warning, error, skipped } = checksFor('home')

/** Checks that only the owner can access the files of a home, and that the disk has space. */
export const checkHome = async (home: Home): Promise<Check[]> => {
  const { root } = home
  try {
    await stat(root)
  } catch (failure) {
    const code = systemCode(failure)
    return [
      code === 'ENOENT'
        ? warning('folder', `there is no home at ${root} yet`, 'doorward init')
        : error(
            'folder',
            `${root} cannot be read (${code ?? 'unknown reason'})`,
            'take ownership of it, or choose another home with --home or DOORWARD_HOME',
          ),
    ]
  }
  return [...(await checkEntries(home)), await checkDisk(root)]
}

const checkEntries = async (home: Home): Promise<Check[]> => {
  const { root } = home
  const hasModes = process.platform !== 'win32'
  const entries = await readEntries(home)
  const isWritable = await access(root, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )
  const wrong = [
    ...(isWritable
      ? []
      : [error('folder', `${root} cannot be written to`, 'make it writable for you')]),
    ...entries.flatMap((entry) => findFault(entry, root, process.getuid?.()) ?? []),
    ...(hasModes ? [] : [skipped('modes', 'files have no permission bits on this system')]),
  ]
  if (wrong.length > 0) return wrong
  const secrets = entries.filter(({ role }) => role === 'secret-file').length
  return [
    ok('folder', `${root} is yours alone`),
    ok('modes', `${secrets} secret ${secrets === 1 ? 'file is' : 'files are'} closed to others`),
  ]
}

const readEntries = async (home: Home): Promise<HomeEntry[]> => {
  const entries = await Promise.all([
    ...[home.root, home.config, home.logs].map(async (path) => readEntry(path, 'folder')),
    ...[home.run, home.tokens, home.clients].map(async (path) => readEntry(path, 'secret-folder')),
    ...[
      home.env,
      home.apiToken,
      home.accounts,
      ...(await filesIn(home.tokens)),
      ...(await filesIn(home.clients)),
    ].map(async (path) => readEntry(path, 'secret-file')),
    ...['webhooks', 'agents', 'gateway'].map(async (name) =>
      readEntry(join(home.config, `${name}.yaml`), 'config-file'),
    ),
  ])
  return entries.filter((entry) => entry !== undefined)
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

/** Who could read or change this file. Without `uid` the system has no permission bits. */
export const findFault = (
  entry: HomeEntry,
  root: string,
  uid: number | undefined,
): Check | undefined => {
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
  if (uid === undefined) return undefined
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

const megabyte = 1024 * 1024

const checkDisk = async (root: string): Promise<Check> => {
  const found = await statfs(root).catch(() => undefined)
  if (!found) return skipped('disk', 'the free disk space is unknown')
  const free = Math.floor((found.bavail * found.bsize) / megabyte)
  if (free < 1)
    return error('disk', `the disk of ${root} is full`, 'free some space: tokens cannot be saved')
  if (free < 100) return warning('disk', `only ${free} MB free`, 'free some space')
  return ok('disk', free >= 1024 ? `${Math.floor(free / 1024)} GB free` : `${free} MB free`)
}
