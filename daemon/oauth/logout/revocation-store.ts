import { randomBytes } from 'node:crypto'
import { lstat, mkdir, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { DoorwardError, errorName, systemCode } from '../../../shared/errors.ts'
import { syncFolder, writeFileAtomic } from '../../../shared/home/files.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { isProviderName } from '../providers/providers.ts'

const fileName = /^(.+)-[0-9a-f]{16}\.json$/
const leftover = /^.+-[0-9a-f]{16}\.json\.[0-9a-f]{12}\.tmp$/

/** The folder of the revocations that wait. */
const pendingFolder = (home: Home): string => join(home.tokens, 'revoke')

/** A new name for a file in `tokens/revoke/`. */
const newPendingName = (provider: string): string =>
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
    await writeFileAtomic(join(folder, name), `${JSON.stringify(pending, null, 2)}\n`)
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
const readPending = async (home: Home, name: string): Promise<PendingRevocation | undefined> => {
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
const listPending = async (home: Home): Promise<string[]> =>
  (await listFolder(home)).filter((name) => providerOfName(name) !== undefined).sort()

/** Removes a pending revocation; there may be none. Throws `home-unusable`. */
const removePending = async (home: Home, name: string): Promise<void> => {
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
export const removeStaleFiles = async (home: Home): Promise<void> => {
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

/** The pending revocations on the disk, and those that could not be written there. */
export type RevocationStore = {
  /** Keeps a new one and returns its name. On the disk where that can be, else in memory: that is logged. */
  readonly add: (pending: PendingRevocation) => Promise<string>
  readonly save: (name: string, pending: PendingRevocation) => Promise<void>
  /** Undefined when there is none of this name any more. Throws for a file that is not to be used. */
  readonly read: (name: string) => Promise<PendingRevocation | undefined>
  readonly remove: (name: string) => Promise<void>
  /** All names, or those of one provider. Throws `token-file-insecure` for the folder. */
  readonly names: (provider?: string) => Promise<string[]>
  /** True while this one will survive the daemon. */
  readonly isOnDisk: (name: string) => boolean
}

/** Makes the store of one home. */
export const createRevocationStore = ({
  home,
  log,
}: Pick<OAuthDependencies, 'home' | 'log'>): RevocationStore => {
  const inMemory = new Map<string, PendingRevocation>()

  const save = async (name: string, pending: PendingRevocation): Promise<void> => {
    try {
      await writePending(home, name, pending)
      inMemory.delete(name)
    } catch (error) {
      inMemory.set(name, pending)
      const fields = { provider: pending.provider, error: errorName(error) }
      log.error(fields, 'a pending revocation is kept in memory alone')
    }
  }
  return {
    save,
    add: async (pending) => {
      const name = newPendingName(pending.provider)
      await save(name, pending)
      return name
    },
    read: async (name) => inMemory.get(name) ?? readPending(home, name),
    remove: async (name) => {
      inMemory.delete(name)
      await removePending(home, name)
    },
    names: async (provider) => {
      // What is in memory is tried all the same when the folder cannot be used.
      const onDisk = await listPending(home).catch((error: unknown) => {
        if (inMemory.size === 0) throw error
        return []
      })
      const all = [...new Set([...onDisk, ...inMemory.keys()])]
      return all.filter((name) => provider === undefined || providerOfName(name) === provider)
    },
    isOnDisk: (name) => !inMemory.has(name),
  }
}

/** One file in `tokens/revoke/`: tokens that a provider has still to take back. */
const pendingRevocationSchema = z.looseObject({
  version: z.literal(1),
  provider: z.string(),
  tokens: z.object({
    accessToken: z.string().min(1),
    refreshToken: z.string().min(1).optional(),
  }),
  /** The client that the tokens belong to, with its secret: the remembered one may be forgotten by now. */
  client: z.object({ clientId: z.string().min(1), clientSecret: z.string().min(1).optional() }),
  account: z.object({ id: z.string(), name: z.string() }).nullable(),
  extent: z.enum(['grant', 'tokens']),
  since: z.iso.datetime(),
  /** How often the provider was asked in vain. */
  attempts: z.int().min(0),
  /** What came of the last attempt, in words that are safe to show. */
  lastFailure: z.string().optional(),
})
export type PendingRevocation = z.infer<typeof pendingRevocationSchema>

const second = 1000
const minute = 60 * second
const day = 24 * 60 * minute
const firstDelayMs = minute
const longestDelayMs = 6 * 60 * minute
const keepMs = 30 * day

/**
 * How long to wait after this many attempts in vain, in milliseconds: a minute, doubling to six hours,
 * and up to a quarter more, so that many do not come at once. `random` is from 0 to 1.
 */
export const retryDelayMs = (attempts: number, random: number): number => {
  const delay = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.max(0, attempts - 1))
  return Math.round(delay * (1 + random / 4))
}

/** When an attempt was made (milliseconds since 1970), and how long to wait after it. */
export type Wait = { readonly from: number; readonly delayMs: number }

/**
 * True when the wait is over, by the clock on the wall, so that time spent asleep counts. A clock that
 * was set back is not waited for.
 */
export const isWaitOver = ({ from, delayMs }: Wait, now: number): boolean =>
  now < from || now - from >= delayMs

/** For how long to sleep at most, in milliseconds: a sleeping machine stops timers, so never for long. */
export const nextLookMs = (waits: readonly Wait[], now: number): number =>
  Math.min(minute, ...waits.map((wait) => Math.max(second, wait.from + wait.delayMs - now)))

/** The last day on which it is tried: 30 days after it began; milliseconds since 1970. */
export const giveUpAt = (since: number): number => since + keepMs

/** `2026-12-21`: the date until which a revocation that began then is tried. */
export const giveUpDate = (since: number): string =>
  new Date(giveUpAt(since)).toISOString().slice(0, 10)

/** What to keep of an attempt in vain. `now` in milliseconds since 1970. */
export const afterFailure = (
  pending: PendingRevocation,
  lastFailure: string,
  now: number,
): PendingRevocation => ({
  ...pending,
  // A clock that was set back must not make thirty days longer.
  since: new Date(Math.min(Date.parse(pending.since), now)).toISOString(),
  attempts: pending.attempts + 1,
  lastFailure,
})
