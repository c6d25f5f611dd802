import { constants } from 'node:fs'
import { mkdir, open, realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import type { Answered } from './answered.ts'

/**
 * Appends an answer as a Markdown section to a file (made 0600 if new). A relative path lies under
 * the home, whose folders are made; a folder elsewhere must be there. Throws `delivery-failed`.
 */
export const appendToFile = async (
  path: string,
  { eventId, webhook, receivedAt, text }: Answered,
  homeFolder: string,
): Promise<undefined> => {
  const full = fullPath(path, homeFolder)
  if (isOurs(full, homeFolder)) throw ownFile(full)
  const section = `## ${receivedAt.toISOString()} ${webhook}\n\n<!-- ${eventId} -->\n${text.trimEnd()}\n\n`
  try {
    if (!isAbsolute(path) && !path.startsWith('~/'))
      await mkdir(dirname(full), { recursive: true, mode: 0o700 })
    // By its real name too: the home, or a folder on the way, may be a link.
    if (isOurs(join(await realpath(dirname(full)), basename(full)), await realpath(homeFolder)))
      throw ownFile(full)
    // O_NOFOLLOW: a link planted under this name must not lead the answer elsewhere.
    // Flags that Windows lacks count as 0. O_NONBLOCK: a named pipe without a reader must not hold the delivery for ever.
    const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW, O_NONBLOCK } = constants
    const flags = O_APPEND | O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK
    const file = await open(full, flags, 0o600)
    try {
      if (!(await file.stat()).isFile())
        throw new DoorwardError('delivery-failed', `${full} is not a file`)
      // One write keeps sections whole that come at the same time; a full disk takes a part of it.
      const bytes = Buffer.from(section)
      const { bytesWritten } = await file.write(bytes)
      if (bytesWritten < bytes.length)
        throw new DoorwardError(
          'delivery-failed',
          `only a part of the answer went into ${full}: no space left, or the file may not grow`,
        )
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError('delivery-failed', `cannot write ${full}: ${reason(error)}`, {
      cause: error,
    })
  }
}

const fullPath = (path: string, homeFolder: string): string => {
  if (path.startsWith('~/')) return join(homedir(), path.slice(2))
  return isAbsolute(path) ? path : join(homeFolder, path)
}

const ours = new Set(['.env', 'config', 'run', 'tokens', 'clients'])

/**
 * True for what doorward itself reads or keeps secret under home, and its log: a target may be made
 * of names out of a payload alone, and an answer in `.env` would be the next start's secrets.
 */
const isOurs = (full: string, homeFolder: string): boolean => {
  const [first = '', second = ''] = relative(homeFolder, full).split(sep).map(folded)
  return ours.has(first) || (first === 'logs' && second.startsWith('daemon.'))
}

/**
 * Some file systems ignore case, and Windows dots and spaces at the end. By way of upper case, which
 * is how they compare: there is a second small s (U+017F).
 */
const folded = (name: string): string =>
  name
    .toUpperCase()
    .toLowerCase()
    .replace(/[. ]+$/, '')

const ownFile = (full: string) =>
  new DoorwardError('delivery-failed', `${full} is one of doorward's own files`)

const reason = (error: unknown): string => {
  const code = systemCode(error)
  const words: Record<string, string> = {
    EACCES: 'permission denied',
    ENOENT: 'its folder does not exist',
    ENOSPC: 'no space left on the disk',
    ELOOP: 'it is a symbolic link',
    EISDIR: 'it is a folder',
    EROFS: 'the file system is read-only',
    ENXIO: 'it is not a file',
  }
  return (code && words[code]) ?? code ?? 'unknown reason'
}
