import { constants } from 'node:fs'
import { type FileHandle, access, lstat, mkdir, open, realpath } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { isOwnFile, makesFolders, resolveTargetFile } from '../../../shared/targets/targets.ts'
import { systemReason } from '../../../shared/home/home.ts'
import { toPlainText } from '../../../shared/text.ts'
import type { AgentReply, Sent } from '../sender.ts'

// Flags that Windows lacks count as 0.
const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW, O_NONBLOCK, W_OK, X_OK } = constants

/**
 * Appends a reply as a Markdown section to a file (0600 if new). A relative path is under the home, where
 * missing folders are created; elsewhere the folder must exist. Removes escape sequences, as the file may be
 * read in a terminal. Throws `delivery-failed`.
 */
export const appendToFile = async (
  path: string,
  reply: AgentReply,
  homeFolder: string,
): Promise<Sent> => {
  const file = resolveTargetFile(path, homeFolder)
  const section = toSection(reply)
  await toDeliveryErrors(file, async () => {
    refuseOwn(file, homeFolder)
    if (makesFolders(path)) await mkdir(dirname(file), { recursive: true, mode: 0o700 })
    await refuseOwnByRealPath(file, dirname(file), homeFolder)
    await withPlainFile(file, O_APPEND | O_CREAT, async (opened) => {
      // A single write keeps concurrent sections whole; a full disk may write only a part.
      const bytes = Buffer.from(section)
      const { bytesWritten } = await opened.write(bytes)
      if (bytesWritten < bytes.length)
        throw new DoorwardError(
          'delivery-failed',
          `only a part of the answer was written to ${file}: the disk is full, or the file has a size limit`,
        )
    })
  })
  return { made: { what: 'file', url: pathToFileURL(file).href } }
}

/** The section that is appended for a reply. */
export const toSection = ({ eventId, webhook, receivedAt, text }: AgentReply): string =>
  `## ${receivedAt.toISOString()} ${webhook}\n\n<!-- ${eventId} -->\n${toPlainText(text).trimEnd()}\n\n`

/** Throws what `appendToFile` would throw now, and writes nothing. */
export const tryFile = async (path: string, homeFolder: string): Promise<void> => {
  const file = resolveTargetFile(path, homeFolder)
  await toDeliveryErrors(file, async () => {
    refuseOwn(file, homeFolder)
    const folder = makesFolders(path) ? await findExisting(dirname(file)) : dirname(file)
    await refuseOwnByRealPath(file, folder, homeFolder)
    if (folder === dirname(file) && (await exists(file))) await withPlainFile(file, 0)
    else await access(folder, W_OK | X_OK)
  })
}

/** The folder or its nearest existing ancestor. */
const findExisting = async (folder: string): Promise<string> =>
  dirname(folder) === folder || (await exists(folder)) ? folder : findExisting(dirname(folder))

/** True also for a dangling link. */
const exists = async (path: string): Promise<boolean> => {
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
  // O_NOFOLLOW: a planted link must not redirect the answer.
  // O_NONBLOCK: a named pipe without a reader must not block the delivery.
  const opened = await open(file, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | flags, 0o600)
  try {
    if (!(await opened.stat()).isFile())
      throw new DoorwardError('delivery-failed', `${file} is not a file`)
    await use?.(opened)
  } finally {
    await opened.close()
  }
}

const refuseOwn = (file: string, homeFolder: string, shownName = file): void => {
  if (isOwnFile(file, homeFolder))
    throw new DoorwardError('delivery-failed', `${shownName} is one of doorward's own files`)
}

/** By its real path: the home or a folder of the path may be a link. `folder` exists. */
const refuseOwnByRealPath = async (
  file: string,
  folder: string,
  homeFolder: string,
): Promise<void> => {
  const realFile = join(await realpath(folder), relative(folder, file))
  refuseOwn(realFile, await realpath(homeFolder), file)
}

const toDeliveryErrors = async (file: string, write: () => Promise<void>): Promise<void> => {
  try {
    await write()
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError('delivery-failed', `cannot write ${file}: ${describeReason(error)}`, {
      cause: error,
    })
  }
}

const describeReason = (error: unknown): string => {
  const reasons: Record<string, string> = {
    ENOENT: 'its folder does not exist',
    ENAMETOOLONG: 'its name is too long',
    ELOOP: 'it is a symbolic link',
    ENOTDIR: 'a part of its path is a file',
    EEXIST: 'a part of its path is a file',
    ENXIO: 'it is not a file',
  }
  return reasons[systemCode(error) ?? ''] ?? systemReason(error)
}
