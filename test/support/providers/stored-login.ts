import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Home } from '../../../shared/home/home.ts'
import { writeFileAtomic } from '../../../shared/home/files.ts'

/** Writes the token file of a login; its access token came `agoMs` ago and is good for an hour from then. */
export const storeLogin = async (
  home: Home,
  provider: string,
  refreshToken: string,
  agoMs = 40 * 60_000,
): Promise<void> => {
  await mkdir(home.tokens, { recursive: true, mode: 0o700 })
  const obtainedAt = Date.now() - agoMs
  const record = {
    version: 1,
    provider,
    account: null,
    scopes: ['openid', 'email'],
    tokenType: 'Bearer',
    accessToken: 'of-before',
    refreshToken,
    expiresAt: new Date(obtainedAt + 60 * 60_000).toISOString(),
    obtainedAt: new Date(obtainedAt).toISOString(),
    clientId: 'public',
  }
  await writeFileAtomic(join(home.tokens, `${provider}.json`), JSON.stringify(record))
}
