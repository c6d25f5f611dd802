import { randomBytes } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../shared/errors.ts'
import { parseKey, type SealKey } from '../oauth/tokens/sealed-file.ts'

type Keychain = () => { readonly isWanted: boolean; readonly key: SealKey | undefined }

/** The key of the keychain where `tokens.store` has it, else that of `run/history.key`, 0600. */
export type HistoryKey = {
  /** Undefined where there is none, or until the keychain has given it. */
  readonly find: () => Promise<SealKey | undefined>
  readonly findOrMake: () => Promise<SealKey | undefined>
  /** Removes the file. That of the keychain is for tokens too, and stays. */
  readonly remove: () => Promise<void>
}

export const createHistoryKey = (run: string, keychain: Keychain): HistoryKey => {
  const path = join(run, 'history.key')
  /** Undefined where it cannot be read now: another key would lose what this one has sealed. */
  const readText = async () =>
    readFile(path, 'utf8').catch((error) => (systemCode(error) === 'ENOENT' ? '' : undefined))
  const read = async () => parseKey(((await readText()) ?? '').trim())
  const find = async () => {
    const { isWanted, key } = keychain()
    return isWanted ? key : read()
  }
  return {
    find,
    findOrMake: async () => {
      const known = await find()
      if (known || keychain().isWanted || (await readText()) === undefined) return known
      const made = randomBytes(32).toString('base64')
      await rm(path, { force: true })
      await writeFile(path, `${made}\n`, { mode: 0o600, flag: 'wx' })
      return parseKey(made)
    },
    remove: async () => rm(path, { force: true }),
  }
}
