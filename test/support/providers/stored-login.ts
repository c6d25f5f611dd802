import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { LoginServer } from '../../../daemon/oauth/providers/login-server.ts'
import type { Home } from '../../../shared/home/home.ts'
import { writeFileAtomic } from '../../../shared/home/files.ts'

/**
 * Writes the token file of a login; its access token came `agoMs` ago and is good for an hour from then. Without a
 * server it is of an earlier version: the next start ties it to the configured one, and writes it again.
 */
export const storeLogin = async (
  home: Home,
  provider: string,
  refreshToken: string,
  agoMs = 40 * 60_000,
  server?: LoginServer,
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
    server,
  }
  await writeFileAtomic(join(home.tokens, `${provider}.json`), JSON.stringify(record))
}
