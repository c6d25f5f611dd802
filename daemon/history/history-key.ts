import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../shared/errors.ts'
import { parseKey, type SealKey } from '../oauth/tokens/sealed-file.ts'

type Keychain = () => { readonly isWanted: boolean; readonly key: SealKey | undefined }

/** Finds the key of the keychain, or that of `run/history.key`, which is made when `isSealing`. */
export const createHistoryKey = (run: string, keychain: Keychain, isSealing: () => boolean) => {
  const path = join(run, 'history.key')
  const read = async () => parseKey((await readFile(path, 'utf8').catch(() => '')).trim())
  return async (): Promise<SealKey | undefined> => {
    const { isWanted, key } = keychain()
    if (isWanted) return key
    const known = await read()
    if (known || !isSealing()) return known
    const made = randomBytes(32).toString('base64')
    try {
      await writeFile(path, `${made}\n`, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error
      // Another process has made it.
      return read()
    }
    return parseKey(made)
  }
}
