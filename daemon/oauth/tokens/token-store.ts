import { constants, lstatSync, type Stats } from 'node:fs'
import { access, readdir, rename, statfs, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { StatusProblem } from '../../../shared/api/api.ts'
import { compareLogins, getProviderName, isLoginName } from '../../../shared/config/name-forms.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { syncFolder, writeFileAtomic } from '../../../shared/home/files.ts'
import { type Home, isTransient, readSecretFile, systemReason } from '../../../shared/home/home.ts'
import type { KeyedMutex } from '../../util/concurrency.ts'
import { openTokenFile, type TokenHome } from './keychain.ts'
import { isSealed } from './sealed-file.ts'
import { type TokenRecord, tokenRecordSchema } from './token-record.ts'

/**
 * Writes `tokens/<provider>.json`, 0600, whole or not at all, and sealed where the home has a keychain that
 * wants it; it is on the disk when this returns.
 */
export const writeToken = async (home: TokenHome, record: TokenRecord): Promise<void> => {
  const text = `${JSON.stringify(record, null, 2)}\n`
  try {
    await writeFileAtomic(
      tokenPath(home, record.provider),
      home.keychain?.seal(toLabel(record.provider), text) ?? text,
    )
  } catch (error) {
    throw new DoorwardError(
      'home-unusable',
      `cannot write the tokens of ${record.provider} to ${home.tokens} (${systemCode(error)})`,
      { cause: error, hint: 'make the folder writable for you and see that the disk is not full' },
    )
  }
}

/**
 * The token record of a provider, or undefined when there is none. Throws `token-file-insecure` when
 * others could read or plant the file, `home-unusable` when the system cannot open it for now,
 * `keychain-unavailable` when it is sealed and the key is not known, and `token-file-damaged` when it is not a
 * token record: the file is renamed and kept, and the provider fails with this error until the next login.
 */
export const readToken = async (
  home: TokenHome,
  provider: string,
): Promise<TokenRecord | undefined> => {
  const path = tokenPath(home, provider)
  const text = await readGuarded(path, provider)
  if (text === undefined) {
    if ((await damagedFiles(home, provider)).length > 0) throw damaged(home, provider)
    return undefined
  }
  const opened = openTokenFile(home, path, toLabel(provider), text)
  // The key may come back: the file stays where it is.
  if (opened === 'key-lost') throw keyLost(path, provider)
  const record = opened && parseRecord(opened.text, provider)
  if (record) return record
  const aside = `${path}.damaged-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`
  await rename(path, aside).catch((error: unknown) => {
    // Another reader has renamed it.
    if (systemCode(error) !== 'ENOENT') throw error
  })
  await syncFolder(home.tokens)
  throw damaged(home, provider)
}

/**
 * Token records in memory. The file decides: its status is checked each time, so that a file that was
 * changed, removed or opened to others by hand counts immediately.
 */
export class TokenCache {
  readonly #home: Home
  readonly #known = new Map<string, { readonly stamp: Stamp; readonly record: TokenRecord }>()

  constructor(home: Home) {
    this.#home = home
  }

  /** The record of a provider as `readToken` returns it, with what that throws. */
  async get(provider: string): Promise<TokenRecord | undefined> {
    const stamp = readStamp(tokenPath(this.#home, provider))
    const known = this.#known.get(provider)
    if (known && stamp && isSame(known.stamp, stamp)) return known.record
    const record = await readToken(this.#home, provider)
    this.#known.delete(provider)
    // A file that was replaced while it was read is read again next time.
    if (record && stamp) this.#known.set(provider, { stamp, record })
    return record
  }
}

/** The fields that change with every write, which creates a new file. */
type Stamp = Pick<Stats, 'dev' | 'ino' | 'size' | 'mtimeMs' | 'ctimeMs' | 'mode' | 'uid'>

const isSame = (a: Stamp, b: Stamp): boolean =>
  a.ino === b.ino &&
  a.ctimeMs === b.ctimeMs &&
  a.mtimeMs === b.mtimeMs &&
  a.size === b.size &&
  a.mode === b.mode &&
  a.uid === b.uid &&
  a.dev === b.dev

/** Synchronous: the thread pool costs ten times the call itself. */
const readStamp = (path: string): Stamp | undefined => {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/** Removes the record of a provider, its damaged and its temporary files: a logout leaves no secret. */
export const removeToken = async (home: Home, provider: string): Promise<void> => {
  const others = (await listFolder(home)).filter((name) => name.startsWith(`${provider}.json.`))
  for (const name of [`${provider}.json`, ...others])
    await unlink(join(home.tokens, name)).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return
      throw new DoorwardError(
        'home-unusable',
        `cannot remove ${name} from ${home.tokens} (${systemCode(error)})`,
        { cause: error, hint: 'remove it by hand' },
      )
    })
  await syncFolder(home.tokens)
}

/** The logins that have a token file, damaged ones included; the accounts of a provider in a row. */
export const tokenProviders = async (home: Home): Promise<string[]> => {
  const names = await listFolder(home)
  const providers = names.map((name) => name.replace(/\.json(\.damaged-\w+)?$/, ''))
  return [...new Set(providers.filter((name, index) => name !== names[index]))]
    .filter(isLoginName)
    .sort(compareLogins)
}

/** The usable records of all accounts of a provider. Throws as `readToken` where a file may be fixed. */
export const readAccounts = async (home: TokenHome, login: string): Promise<TokenRecord[]> => {
  const records: TokenRecord[] = []
  for (const name of await tokenProviders(home)) {
    if (getProviderName(name) !== getProviderName(login)) continue
    const record = await readToken(home, name).catch((error: unknown) => {
      if (error instanceof DoorwardError && error.code === 'token-file-damaged') return undefined
      throw error
    })
    if (record) records.push(record)
  }
  return records
}

/** The path of a token file. Throws `provider-unknown` for a name that no provider can have. */
export const tokenPath = (home: Home, provider: string): string => {
  if (!isLoginName(provider))
    throw new DoorwardError('provider-unknown', 'not the name of a provider')
  return join(home.tokens, `${provider}.json`)
}

const readGuarded = async (path: string, provider: string): Promise<string | undefined> => {
  try {
    return await readSecretFile(path)
  } catch (error) {
    if (!(error instanceof DoorwardError)) {
      if (systemCode(error) !== 'EISDIR') throw error
      throw new DoorwardError('token-file-insecure', `${path} is a folder, not the token file`, {
        cause: error,
        hint: `remove it, then: doorward oauth login ${provider}`,
        about: { provider },
      })
    }
    if (isTransient(error.cause)) throw error
    throw new DoorwardError('token-file-insecure', error.message, {
      cause: error,
      hint: error.hint,
      about: { provider },
    })
  }
}

/** Context bound into the encryption (additional authenticated data). */
const toLabel = (provider: string): string => `doorward token ${provider}`

/** Reads another token file of this provider, such as a temporary one, as `readToken` does. */
export const readTokenAt = async (
  home: TokenHome,
  path: string,
  provider: string,
): Promise<TokenRecord | undefined> => {
  const opened = openTokenFile(home, path, toLabel(provider), (await readSecretFile(path)) ?? '')
  return typeof opened === 'object' ? parseRecord(opened.text, provider) : undefined
}

/**
 * Seals the plain token files, or makes the sealed ones plain, as the configuration says, until the signal is
 * aborted. Returns how many it changed: files that cannot be used stay as they are.
 */
export const convertTokens = async (
  home: TokenHome,
  withLock: KeyedMutex,
  signal: AbortSignal,
): Promise<number> => {
  const convert = async (name: string): Promise<boolean> => {
    if (signal.aborted) return false
    const text = await readSecretFile(tokenPath(home, name)).catch(() => undefined)
    if (text === undefined || !home.keychain?.isOutdated(text)) return false
    const record = await readToken(home, name).catch(() => undefined)
    if (record) await writeToken(home, record)
    return record !== undefined
  }
  const names = await tokenProviders(home)
  const results = await Promise.all(names.map((name) => withLock(name, () => convert(name))))
  return results.filter(Boolean).length
}

/** True when a token file, or a file of tokens that are to be revoked, is sealed. */
export const hasSealedFiles = async (home: Home): Promise<boolean> => {
  for (const folder of [home.tokens, join(home.tokens, 'revoke')])
    for (const name of await readdir(folder).catch(() => [])) {
      const text = await readSecretFile(join(folder, name)).catch(() => undefined)
      if (text !== undefined && isSealed(text)) return true
    }
  return false
}

/** The record in the text of a token file, or undefined when it is not a record of this provider. */
export const parseRecord = (text: string, provider: string): TokenRecord | undefined => {
  try {
    const record = tokenRecordSchema.parse(JSON.parse(text))
    return record.provider === provider ? record : undefined
  } catch {
    // The parser's own message can quote the file, and with it a token.
    return undefined
  }
}

const damagedFiles = async (home: Home, provider: string): Promise<string[]> =>
  (await listFolder(home)).filter((name) => name.startsWith(`${provider}.json.damaged-`))

const listFolder = async (home: Home): Promise<string[]> => {
  try {
    return await readdir(home.tokens)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw new DoorwardError(
      'home-unusable',
      `cannot read the folder ${home.tokens} (${systemCode(error)})`,
      { cause: error, hint: 'check that you own it and that the disk and the limits allow it' },
    )
  }
}

const keyLost = (path: string, provider: string): DoorwardError =>
  new DoorwardError(
    'token-file-damaged',
    `${path} is sealed with a key that the keychain does not have: the login to ${provider} cannot be read`,
    { hint: `doorward oauth login ${provider}`, about: { provider } },
  )

const damaged = (home: Home, provider: string): DoorwardError =>
  new DoorwardError(
    'token-file-damaged',
    `the token file of ${provider} could not be read and was kept as ${join(home.tokens, `${provider}.json.damaged-…`)}`,
    { hint: `doorward oauth login ${provider}`, about: { provider } },
  )

const minFreeBytes = 64 * 1024

/** Why new tokens cannot be stored: a folder that is missing or read-only, a full disk. Writes nothing. */
export const storageProblems = async (home: Home): Promise<StatusProblem[]> => {
  const problem = (detail: string, hint: string) => [{ code: 'home-unusable', detail, hint }]
  try {
    await access(home.tokens, constants.W_OK)
    const { bavail, bsize } = await statfs(home.tokens)
    if (bavail * bsize >= minFreeBytes) return []
    return problem(
      `the disk of ${home.root} is full: tokens cannot be renewed and the log is not written`,
      'free space on that disk: unsaved tokens are written again automatically',
    )
  } catch (error) {
    // An error of statfs itself says nothing about the folder.
    if (!['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS'].includes(systemCode(error) ?? ''))
      return []
    if (systemCode(error) === 'ENOENT')
      return problem(
        `the folder ${home.tokens} is missing: no token can be issued or renewed`,
        'restore it, or create it again: doorward daemon restart',
      )
    return problem(
      `cannot write to ${home.tokens} (${systemReason(error)}): tokens cannot be renewed`,
      'make it writable for you: unsaved tokens are written again automatically',
    )
  }
}
