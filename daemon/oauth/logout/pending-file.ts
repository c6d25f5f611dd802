import { randomBytes } from 'node:crypto'
import { lstat, mkdir, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import { syncFolder, writeWhole } from '../../../shared/home/files.ts'
import { isProviderName } from '../provider/providers.ts'
import { type PendingRevocation, pendingRevocationSchema } from './pending-revocation.ts'

const fileName = /^(.+)-[0-9a-f]{16}\.json$/
const leftover = /^.+-[0-9a-f]{16}\.json\.[0-9a-f]{12}\.tmp$/

/** The folder of the revocations that wait. */
const pendingFolder = (home: Home): string => join(home.tokens, 'revoke')

/** A new name for a file in `tokens/revoke/`. */
export const newPendingName = (provider: string): string =>
  `${provider}-${randomBytes(8).toString('hex')}.json`

/** The provider that a file of this name is about, or undefined when the name is none of ours. */
export const providerOfName = (name: string): string | undefined => {
  const provider = fileName.exec(name)?.[1]
  return provider !== undefined && isProviderName(provider) ? provider : undefined
}

/**
 * Writes a pending revocation, 0600 in a folder of 0700, whole or not at all. Throws `home-unusable` or
 * `token-file-insecure`.
 */
export const writePending = async (
  home: Home,
  name: string,
  pending: PendingRevocation,
): Promise<void> => {
  const folder = pendingFolder(home)
  try {
    await makeFolder(home)
    await checkFolder(folder)
    await writeWhole(join(folder, name), `${JSON.stringify(pending, null, 2)}\n`)
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError(
      'home-unusable',
      `cannot write a pending revocation of ${pending.provider} to ${folder} (${systemCode(error)})`,
      { cause: error, hint: 'make the folder writable for you and see that the disk is not full' },
    )
  }
}

/**
 * A pending revocation, or undefined when there is none of this name. Throws `token-file-insecure` when
 * others could read or plant it, and `token-file-damaged`: neither is ever used.
 */
export const readPending = async (
  home: Home,
  name: string,
): Promise<PendingRevocation | undefined> => {
  const path = join(pendingFolder(home), name)
  const text = await readSecretFile(path).catch((error: unknown) => {
    if (!(error instanceof DoorwardError)) throw error
    throw new DoorwardError(
      'token-file-insecure',
      `pending revocation not used: ${error.message}`,
      {
        cause: error,
        hint: error.hint,
      },
    )
  })
  if (text === undefined) return undefined
  const pending = parsePending(text)
  if (pending && pending.provider === providerOfName(name)) return pending
  throw new DoorwardError(
    'token-file-damaged',
    `the pending revocation ${path} cannot be read, and its tokens cannot be revoked`,
    { hint: `rm ${path}` },
  )
}

/** The names of all pending revocations, oldest name first. Throws `token-file-insecure` for the folder. */
export const listPending = async (home: Home): Promise<string[]> =>
  (await listFolder(home)).filter((name) => providerOfName(name) !== undefined).sort()

/** Removes a pending revocation; there may be none. Throws `home-unusable`. */
export const removePending = async (home: Home, name: string): Promise<void> => {
  const folder = pendingFolder(home)
  try {
    await unlink(join(folder, name))
    await syncFolder(folder)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return
    throw new DoorwardError(
      'home-unusable',
      `cannot remove ${name} from ${folder} (${systemCode(error)})`,
      { cause: error, hint: 'remove it by hand' },
    )
  }
}

/** Removes what a daemon that was killed left half written: there are tokens in it. */
export const removeHalfWritten = async (home: Home): Promise<void> => {
  for (const name of (await listFolder(home)).filter((name) => leftover.test(name)))
    await removePending(home, name)
}

const makeFolder = async (home: Home): Promise<void> => {
  try {
    await mkdir(pendingFolder(home), { mode: 0o700 })
    await syncFolder(home.tokens)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

const listFolder = async (home: Home): Promise<string[]> => {
  const folder = pendingFolder(home)
  try {
    await checkFolder(folder)
    return await readdir(folder)
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    if (systemCode(error) === 'ENOENT') return []
    throw new DoorwardError(
      'home-unusable',
      `cannot read the folder ${folder} (${systemCode(error)})`,
      { cause: error, hint: `chmod 700 ${folder}` },
    )
  }
}

const checkFolder = async (folder: string): Promise<void> => {
  const stats = await lstat(folder)
  const refuse = (what: string, hint: string): DoorwardError =>
    new DoorwardError(
      'token-file-insecure',
      `pending revocations are not used: ${folder} ${what}`,
      {
        hint,
      },
    )
  if (!stats.isDirectory()) throw refuse('is not a folder', `rm ${folder}`)
  if (process.platform === 'win32') return
  if (stats.uid !== process.getuid?.())
    throw refuse(`belongs to another user (${stats.uid})`, `remove it: sudo rm -r ${folder}`)
  if ((stats.mode & 0o077) !== 0)
    throw refuse(
      `is open to other users (mode ${(stats.mode & 0o777).toString(8)})`,
      `chmod 700 ${folder}`,
    )
}

const parsePending = (text: string): PendingRevocation | undefined => {
  try {
    return pendingRevocationSchema.parse(JSON.parse(text))
  } catch {
    // The parser's own message can quote the file, and with it a token.
    return undefined
  }
}
