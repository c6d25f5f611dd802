import { randomBytes } from 'node:crypto'
import { lstat, mkdir, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { isLoginName } from '../../../shared/config/name-forms.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { syncFolder, writeFileAtomic } from '../../../shared/home/files.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import { loginServerSchema } from '../providers/login-server.ts'
import { openTokenFile, type TokenHome } from '../tokens/keychain.ts'

/**
 * One file in `tokens/revoke/`: tokens that the provider has not revoked yet. Fields of other versions are
 * ignored.
 */
const pendingRevocationSchema = z.looseObject({
  version: z.literal(1),
  provider: z.string(),
  tokens: z.object({
    accessToken: z.string().min(1),
    refreshToken: z.string().min(1).optional(),
  }),
  /** The client the tokens belong to, with its secret: the remembered client may be forgotten by now. */
  client: z.object({ clientId: z.string().min(1), clientSecret: z.string().min(1).optional() }),
  /** The server that gave the tokens, the only one that gets them; undefined in files of earlier versions. */
  server: loginServerSchema.optional(),
  account: z.object({ id: z.string(), name: z.string() }).nullable(),
  extent: z.enum(['grant', 'tokens']),
  since: z.iso.datetime(),
  /** Why the last attempt failed, safe to show; undefined before the first one. */
  lastFailure: z.string().optional(),
})
export type PendingRevocation = z.infer<typeof pendingRevocationSchema>

const fileName = /^(.+)-[0-9a-f]{16}\.json$/
const temporaryName = /^.+-[0-9a-f]{16}\.json\.[0-9a-f]{12}\.tmp$/

const getFolder = (home: Home): string => join(home.tokens, 'revoke')

/** The provider in the name of a file, or undefined for a file that is not a pending revocation. */
const parseProvider = (name: string): string | undefined => {
  const provider = fileName.exec(name)?.[1]
  return provider !== undefined && isLoginName(provider) ? provider : undefined
}

/** Writes a new pending revocation and returns the name of its file. Throws as `writePending`. */
export const addPending = async (home: TokenHome, pending: PendingRevocation): Promise<string> => {
  const name = `${pending.provider}-${randomBytes(8).toString('hex')}.json`
  await writePending(home, name, pending)
  return name
}

/**
 * Writes a pending revocation, 0600 in a folder of 0700, whole or not at all, and sealed as token files.
 * Throws `home-unusable` or `token-file-insecure`.
 */
export const writePending = async (
  home: TokenHome,
  name: string,
  pending: PendingRevocation,
): Promise<void> => {
  const folder = getFolder(home)
  const text = `${JSON.stringify(pending, null, 2)}\n`
  try {
    await makeFolder(home)
    await checkFolder(folder)
    await writeFileAtomic(join(folder, name), home.keychain?.seal(toLabel(name), text) ?? text)
  } catch (error) {
    throw toFolderError(error, folder)
  }
}

/**
 * A pending revocation, or undefined when there is no such file. Throws `token-file-insecure` when others
 * could read or plant it, `keychain-unavailable` when it is sealed and the key is not known, and
 * `token-file-damaged`: none of them is ever used.
 */
export const readPending = async (
  home: TokenHome,
  name: string,
): Promise<PendingRevocation | undefined> => {
  const path = join(getFolder(home), name)
  const text = await readText(path)
  if (text === undefined) return undefined
  const opened = openTokenFile(home, path, toLabel(name), text)
  const pending = typeof opened === 'object' ? parsePending(opened.text) : undefined
  if (pending && pending.provider === parseProvider(name)) return pending
  const why = opened === 'key-lost' ? 'is sealed with a key that is lost' : 'cannot be read'
  throw new DoorwardError(
    'token-file-damaged',
    `the pending revocation ${path} ${why}, and its tokens cannot be revoked`,
    { hint: `rm ${path}` },
  )
}

/** Context bound into the encryption (additional authenticated data). */
const toLabel = (name: string): string => `doorward revocation ${name}`

const readText = async (path: string): Promise<string | undefined> =>
  readSecretFile(path).catch((error: unknown) => {
    if (!(error instanceof DoorwardError)) throw error
    const { message, hint } = error
    throw new DoorwardError('token-file-insecure', `pending revocation not used: ${message}`, {
      cause: error,
      hint,
    })
  })

const parsePending = (text: string): PendingRevocation | undefined => {
  try {
    return pendingRevocationSchema.parse(JSON.parse(text))
  } catch {
    // The parser's own message can quote the file, and with it a token.
    return undefined
  }
}

/** The file names of all pending revocations, sorted. Throws `token-file-insecure` for the folder. */
export const listPending = async (home: Home): Promise<string[]> =>
  (await listFolder(home)).filter((name) => parseProvider(name) !== undefined).sort()

/** Removes a pending revocation, if there is one. Throws `home-unusable`. */
export const removePending = async (home: Home, name: string): Promise<void> => {
  const folder = getFolder(home)
  try {
    await unlink(join(folder, name))
    await syncFolder(folder)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw toFolderError(error, folder)
  }
}

/** Removes the temporary files of a killed daemon: they contain tokens. */
export const removeTemporaryFiles = async (home: Home): Promise<void> => {
  for (const name of (await listFolder(home)).filter((name) => temporaryName.test(name)))
    await removePending(home, name)
}

const makeFolder = async (home: Home): Promise<void> => {
  try {
    await mkdir(getFolder(home), { mode: 0o700 })
    await syncFolder(home.tokens)
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
  }
}

const listFolder = async (home: Home): Promise<string[]> => {
  const folder = getFolder(home)
  try {
    await checkFolder(folder)
    return await readdir(folder)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw toFolderError(error, folder)
  }
}

const toFolderError = (error: unknown, folder: string): DoorwardError =>
  error instanceof DoorwardError
    ? error
    : new DoorwardError(
        'home-unusable',
        `cannot use the folder of pending revocations ${folder} (${systemCode(error)})`,
        { cause: error, hint: 'make it writable for you and see that the disk is not full' },
      )

/** Follows no link. */
const checkFolder = async (folder: string): Promise<void> => {
  const stats = await lstat(folder)
  const isOurs = stats.uid === process.getuid?.() && (stats.mode & 0o077) === 0
  if (stats.isDirectory() && (isOurs || process.platform === 'win32')) return
  throw new DoorwardError(
    'token-file-insecure',
    `pending revocations are not used: ${folder} is not a folder that only you can reach`,
    { hint: stats.isDirectory() ? `chmod 700 ${folder}` : `rm ${folder}` },
  )
}
