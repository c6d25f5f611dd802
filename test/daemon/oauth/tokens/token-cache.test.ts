import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { beforeEach, describe, it } from 'mocha'
import { type TokenCache, createTokenCache } from '../../../../daemon/oauth/tokens/token-cache.ts'
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
    cache = createTokenCache(home)
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

  it('gives way to a file of the same length', async () => {
    await writeToken(home, { ...record, accessToken: 'access-2' })
    assert.equal((await cache.get('mine'))?.accessToken, 'access-2')
  })

  it('goes with its file', async () => {
    await removeToken(home, 'mine')
    assert.equal(await cache.get('mine'), undefined)
  })

  it('is given without a second look in the same turn, and looked at again in the next', async () => {
    await nextTurn()
    assert.deepEqual(cache.known('mine'), record)
    rmSync(join(home.tokens, 'mine.json'))
    assert.deepEqual(cache.known('mine'), record)
    await nextTurn()
    assert.equal(cache.known('mine'), undefined)
  })

  it('is not given in the same turn once it was read anew', async () => {
    await nextTurn()
    assert.deepEqual(cache.known('mine'), record)
    await writeToken(home, { ...record, accessToken: 'access-2' })
    await cache.get('mine')
    assert.equal(cache.known('mine')?.accessToken, 'access-2')
    await removeToken(home, 'mine')
    assert.equal(cache.known('mine'), undefined)
  })
})
