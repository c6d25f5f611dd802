import assert from 'node:assert/strict'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, it } from 'mocha'
import { TokenCache } from '../../../../daemon/oauth/tokens/token-store.ts'
import { removeToken, writeToken } from '../../../../daemon/oauth/tokens/token-store.ts'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { type Home, prepareHome } from '../../../../shared/home/home.ts'
import { temporaryHome } from '../../../support/temporary.ts'

const record: TokenRecord = {
  version: 1,
  provider: 'mine',
  accessToken: 'access-1',
  tokenType: 'Bearer',
  scopes: [],
  expiresAt: null,
  obtainedAt: '2026-01-01T00:00:00.000Z',
  account: null,
  clientId: 'id',
}

describe('a token record in memory', () => {
  let home: Home
  let cache: TokenCache

  beforeEach(async () => {
    home = await temporaryHome()
    await prepareHome(home)
    await writeToken(home, record)
    cache = new TokenCache(home)
    assert.deepEqual(await cache.get('mine'), record)
  })

  it('is the same one while its file is the same', async () =>
    assert.equal(await cache.get('mine'), await cache.get('mine')))

  it('is refused as soon as others may read its file', async function () {
    if (process.platform === 'win32') return this.skip()
    await chmod(join(home.tokens, 'mine.json'), 0o644)
    await assert.rejects(cache.get('mine'), { code: 'token-file-insecure' })
    return undefined
  })

  it('is replaced by that of a file of the same length', async () => {
    await writeToken(home, { ...record, accessToken: 'access-2' })
    assert.equal((await cache.get('mine'))?.accessToken, 'access-2')
  })

  it('is removed with its file', async () => {
    await removeToken(home, 'mine')
    assert.equal(await cache.get('mine'), undefined)
  })
})
