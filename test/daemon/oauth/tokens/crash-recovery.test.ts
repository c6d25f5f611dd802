import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { chmod, readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, it } from 'mocha'
import { recoverFiles } from '../../../../daemon/oauth/tokens/crash-recovery.ts'
import { noteSent } from '../../../../daemon/oauth/tokens/refresh.ts'
import { parseKey, sealText } from '../../../../daemon/oauth/tokens/sealed-file.ts'
import { readToken, writeToken } from '../../../../daemon/oauth/tokens/token-store.ts'
import type { TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { type Home, prepareHome } from '../../../../shared/home/home.ts'
import { temporaryHome } from '../../../support/temporary.ts'

const sentAt = Date.parse('2026-01-02T00:00:00.000Z')
const stored: TokenRecord = {
  version: 1,
  provider: 'mine',
  accessToken: 'access-1',
  tokenType: 'Bearer',
  refreshToken: 'refresh-1',
  scopes: [],
  expiresAt: '2026-01-01T01:00:00.000Z',
  obtainedAt: '2026-01-01T00:00:00.000Z',
  account: null,
  clientId: 'id',
}
const renewed: TokenRecord = {
  ...stored,
  accessToken: 'access-2',
  refreshToken: 'refresh-2',
  obtainedAt: '2026-01-02T00:00:01.000Z',
}

describe('a sealed record that a killed daemon left half saved', () => {
  it('is kept while the keychain is unavailable', async () => {
    const home = await temporaryHome()
    await prepareHome(home)
    const key = parseKey(randomBytes(32).toString('base64'))
    assert.ok(key)
    const seal = (record: TokenRecord) =>
      sealText(key, 'doorward token mine', JSON.stringify(record))
    const [path, leftover] = ['mine.json', 'mine.json.0123456789ab.tmp'].map((name) =>
      join(home.tokens, name),
    )
    assert.ok(path !== undefined && leftover !== undefined)
    await writeFile(path, seal(stored), { mode: 0o600 })
    await writeFile(leftover, seal(renewed), { mode: 0o600 })
    await writeFile(leftover.replace('0123', 'abcd'), '{"acc', { mode: 0o600 })
    await noteSent(home, 'mine', 'refresh-1', sentAt)
    const before = await readFile(leftover, 'utf8')
    const { recovered, waiting } = await recoverFiles(home)
    assert.deepEqual([recovered, waiting.map(({ provider }) => provider)], [[], ['mine', 'mine']])
    assert.equal(await readFile(leftover, 'utf8'), before)
  })
})

describe('a record that a killed daemon left half saved', () => {
  let home: Home
  let leftover: string

  beforeEach(async () => {
    home = await temporaryHome()
    await prepareHome(home)
    await writeToken(home, stored)
    leftover = join(home.tokens, 'mine.json.0123456789ab.tmp')
  })
  const leave = async (record: TokenRecord | string) =>
    writeFile(leftover, typeof record === 'string' ? record : JSON.stringify(record), {
      mode: 0o600,
    })
  const accessTokenAfter = async (): Promise<string | undefined> => {
    await recoverFiles(home)
    assert.deepEqual(
      (await readdir(home.tokens)).filter((name) => name.endsWith('.tmp')),
      [],
    )
    return (await readToken(home, 'mine'))?.accessToken
  }

  it('is put in its place when it answers the refresh token that was sent', async () => {
    await noteSent(home, 'mine', 'refresh-1', sentAt)
    await leave(renewed)
    assert.equal(await accessTokenAfter(), 'access-2')
    assert.deepEqual(await readdir(home.tokens), ['mine.json'])
  })

  const others: Readonly<Record<string, TokenRecord | string>> = {
    'is cut off': JSON.stringify(renewed).slice(0, 100),
    'is older than the request': { ...renewed, obtainedAt: '2026-01-01T23:59:59.000Z' },
    'has the refresh token that is stored': { ...renewed, refreshToken: 'refresh-1' },
    'is of another provider': { ...renewed, provider: 'other' },
  }
  for (const [what, record] of Object.entries(others))
    it(`is removed when it ${what}`, async () => {
      await noteSent(home, 'mine', 'refresh-1', sentAt)
      await leave(record)
      assert.equal(await accessTokenAfter(), 'access-1')
    })

  it('is removed when nothing was noted as sent', async () => {
    await leave(renewed)
    assert.equal(await accessTokenAfter(), 'access-1')
  })

  it('is removed when another refresh token was noted as sent', async () => {
    await noteSent(home, 'mine', 'refresh-0', sentAt)
    await leave(renewed)
    assert.equal(await accessTokenAfter(), 'access-1')
  })

  it('is removed when others could have planted it', async () => {
    await noteSent(home, 'mine', 'refresh-1', sentAt)
    await leave(renewed)
    await chmod(leftover, 0o622)
    assert.equal(await accessTokenAfter(), 'access-1')
  })
})
