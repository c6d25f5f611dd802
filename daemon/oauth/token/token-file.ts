import { readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { type Home, isPassing, readSecretFile } from '../../../shared/home/home.ts'
import { syncFolder, writeWhole } from '../../../shared/home/files.ts'
import { isProviderName } from '../provider/providers.ts'
import { type TokenRecord, tokenRecordSchema } from './token-record.ts'

/** Writes `tokens/<provider>.json`, 0600, whole or not at all, and on the disk when this returns. */
export const writeToken = async (home: Home, record: TokenRecord): Promise<void> => {
  try {
    await writeWhole(tokenPath(home, record.provider), `${JSON.stringify(record, null, 2)}\n`)
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
 * others could read or plant the file, `home-unusable` when the system cannot open it just now, and
 * `token-file-damaged` when it is no record: that file is kept beside, and the provider answers so until
 * the next login.
 */
export const readToken = async (home: Home, provider: string): Promise<TokenRecord | undefined> => {
  const path = tokenPath(home, provider)
  const text = await readGuarded(path, provider)
  if (text === undefined) {
    if ((await damagedFiles(home, provider)).length > 0) throw damaged(home, provider)
    return undefined
  }
  const record = parseRecord(text, provider)
  if (record) return record
  const aside = `${path}.damaged-${new Date().toISOString().replaceAll(/[-:.]/g, '')}`
  await rename(path, aside).catch((error: unknown) => {
    // Another reader was quicker.
    if (systemCode(error) !== 'ENOENT') throw error
  })
  await syncFolder(home.tokens)
  throw damaged(home, provider)
}

/**
 * Removes the record of a provider with what was kept of damaged ones, and what a daemon that was
 * killed while it wrote left beside them: a logout leaves no secret.
 */
export const removeToken = async (home: Home, provider: string): Promise<void> => {
  const beside = (await listFolder(home)).filter((name) => name.startsWith(`${provider}.json.`))
  for (const name of [`${provider}.json`, ...beside])
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

/** The providers that have a token file, damaged ones included, sorted. */
export const tokenProviders = async (home: Home): Promise<string[]> => {
  const names = await listFolder(home)
  const providers = names.map((name) => name.replace(/\.json(\.damaged-\w+)?$/, ''))
  return [...new Set(providers.filter((name, index) => name !== names[index]))]
    .filter(isProviderName)
    .sort()
}

/** Where the record of a provider lies. Throws `provider-unknown` for what is no name of one. */
export const tokenPath = (home: Home, provider: string): string => {
  if (!isProviderName(provider))
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
      })
    }
    if (isPassing(error.cause)) throw error
    throw new DoorwardError('token-file-insecure', error.message, {
      cause: error,
      hint: error.hint,
    })
  }
}

/** The record in the text of a token file, or undefined when it is none of this provider. */
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
      { cause: error, hint: 'see that it is yours and that the disk and the limits allow it' },
    )
  }
}

const damaged = (home: Home, provider: string): DoorwardError =>
  new DoorwardError(
    'token-file-damaged',
    `the token file of ${provider} could not be read and was kept as ${join(home.tokens, `${provider}.json.damaged-…`)}`,
    { hint: `doorward oauth login ${provider}` },
  )
