import { constants } from 'node:fs'
import { type FileHandle, access, lstat, mkdir, open, realpath } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { isOwnFile, makesFolders, resolveTargetFile } from '../../../shared/config/targets.ts'
import { systemReason } from '../../../shared/home/home.ts'
import { toPlainText } from '../../../shared/text.ts'
import type { AgentReply } from '../sender.ts'

// Flags that Windows lacks count as 0.
const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW, O_NONBLOCK, W_OK, X_OK } = constants

/**
 * Appends an answer as a Markdown section to a file (made 0600 if new). A relative path lies under
 * the home, whose folders are made; a folder elsewhere must be there. Escape sequences stay out, as the file
 * is read in a terminal. Throws `delivery-failed`.
 */
export const appendToFile = async (
  path: string,
  { eventId, webhook, receivedAt, text }: AgentReply,
  homeFolder: string,
): Promise<undefined> => {
  const file = resolveTargetFile(path, homeFolder)
  const section = `## ${receivedAt.toISOString()} ${webhook}\n\n<!-- ${eventId} -->\n${toPlainText(text).trimEnd()}\n\n`
  await inOurWords(file, async () => {
    refuseOwn(file, homeFolder)
    if (makesFolders(path)) await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await refuseOwnByRealName(file, dirname(file), homeFolder)
    await withPlainFile(file, O_APPEND | O_CREAT, async (opened) => {
      // One write keeps sections whole that come at the same time; a full disk takes a part of it.
      const bytes = Buffer.from(section)
      const { bytesWritten } = await opened.write(bytes)
      if (bytesWritten < bytes.length)
        throw new DoorwardError(
          'delivery-failed',
          `only a part of the answer went into ${file}: no space left, or the file may not grow`,
        )
    })
  })
}

/** Throws what `appendToFile` would throw as things are now, and makes and writes nothing. */
export const tryFile = async (path: string, homeFolder: string): Promise<void> => {
  const file = resolveTargetFile(path, homeFolder)
  await inOurWords(file, async () => {
    refuseOwn(file, homeFolder)
    const folder = makesFolders(path) ? await nearestFolder(dirname(file)) : dirname(file)
    await refuseOwnByRealName(file, folder, homeFolder)
    if (folder === dirname(file) && (await isThere(file))) await withPlainFile(file, 0)
    else await access(folder, W_OK | X_OK)
  })
}

/** The folder itself or the nearest above it that is there: the others would be made. */
const nearestFolder = async (folder: string): Promise<string> =>
  dirname(folder) === folder || (await isThere(folder)) ? folder : nearestFolder(dirname(folder))

/** True also for a link that leads nowhere. */
const isThere = async (path: string): Promise<boolean> => {
  try {
    await lstat(path)
    return true
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

const withPlainFile = async (
  file: string,
  flags: number,
  use?: (opened: FileHandle) => Promise<void>,
): Promise<void> => {
  // O_NOFOLLOW: a link planted under this name must not lead the answer elsewhere.
  // O_NONBLOCK: a named pipe without a reader must not hold the delivery for ever.
  const opened = await open(file, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | flags, 0o600)
  try {
    if (!(await opened.stat()).isFile())
      throw new DoorwardError('delivery-failed', `${file} is not a file`)
    await use?.(opened)
  } finally {
    await opened.close()
  }
}

const refuseOwn = (file: string, homeFolder: string, named = file): void => {
  if (isOwnFile(file, homeFolder))
    throw new DoorwardError('delivery-failed', `${named} is one of doorward's own files`)
}

/** By its real name too: the home, or a folder on the way, may be a link. `folder` is there. */
const refuseOwnByRealName = async (
  file: string,
  folder: string,
  homeFolder: string,
): Promise<void> => {
  const realFile = join(await realpath(folder), relative(folder, file))
  refuseOwn(realFile, await realpath(homeFolder), file)
}

const inOurWords = async (file: string, write: () => Promise<void>): Promise<void> => {
  try {
    await write()
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError('delivery-failed', `cannot write ${file}: ${reason(error)}`, {
      cause: error,
    })
  }
}

/** What the system says, which for a target means more here and there than for any file. */
const reason = (error: unknown): string => {
  const words: Record<string, string> = {
    ENOENT: 'its folder does not exist',
    ENAMETOOLONG: 'its name is too long',
    ELOOP: 'it is a symbolic link',
    ENOTDIR: 'a part of its path is a file',
    EEXIST: 'a part of its path is a file',
    ENXIO: 'it is not a file',
  }
  return words[systemCode(error) ?? ''] ?? systemReason(error)
}
