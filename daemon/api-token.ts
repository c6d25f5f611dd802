import { randomBytes } from 'node:crypto'
import { type Home, readSecretFile } from '../shared/home/home.ts'
import { writeWhole } from '../shared/home/files.ts'

/**
 * The bearer token of local clients, made at the first start. Throws `home-insecure` when others can
 * read it.
 */
export const readOrMakeApiToken = async (home: Home): Promise<string> => {
  const known = (await readSecretFile(home.apiToken))?.trim()
  if (known !== undefined && /^[\x21-\x7e]{32,}$/.test(known)) return known
  const token = randomBytes(32).toString('base64url')
  await writeWhole(home.apiToken, `${token}\n`)
  return token
}
