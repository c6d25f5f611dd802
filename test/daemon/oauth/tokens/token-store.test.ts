import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, it } from 'mocha'
import { listProblems, listProviders, listTokens } from '../../../../daemon/oauth/accounts.ts'
import { forgetClient, rememberClient } from '../../../../daemon/oauth/providers/client-store.ts'
import {
  readToken,
  removeToken,
  tokenProviders,
  writeToken,
} from '../../../../daemon/oauth/tokens/token-store.ts'
import { toSummary, type TokenRecord } from '../../../../daemon/oauth/tokens/token-record.ts'
import { type Home, prepareHome } from '../../../../shared/home/home.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'
import { temporaryFolder, temporaryHome } from '../../../support/temporary.ts'

const record: TokenRecord = {
  version: 1,
  provider: 'github',
  accessToken: 'access-1',
  tokenType: 'Bearer',
  refreshToken: 'refresh-1',
  scopes: ['repo'],
  expiresAt: '2030-01-01T00:00:00.000Z',
  obtainedAt: '2026-01-01T00:00:00.000Z',
  account: { id: '1', name: 'octocat' },
  clientId: 'client-1',
}

describe('token file', () => {
  let home: Home
  let path: string

  beforeEach(async () => {
    home = await temporaryHome()
    await prepareHome(home)
    path = join(home.tokens, 'github.json')
  })

  it('keeps a record, with the fields of a newer version', async () => {
    await writeToken(home, { ...record, later: { kept: true } })
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.deepEqual(await readToken(home, 'github'), { ...record, later: { kept: true } })
    assert.equal(await readToken(home, 'google'), undefined)
  })

  const damages: [string, string][] = [
    ['an empty file', ''],
    ['half a record', JSON.stringify(record).slice(0, 60)],
    ['null', 'null'],
    ['no access token', JSON.stringify({ ...record, accessToken: '' })],
    ['the record of another provider', JSON.stringify({ ...record, provider: 'google' })],
    ['a version that is not known', JSON.stringify({ ...record, version: 2 })],
  ]
  for (const [what, text] of damages)
    it(`puts ${what} aside and says so until the next login`, async () => {
      await writeFile(path, text, { mode: 0o600 })
      for (let time = 0; time < 2; time += 1)
        await assert.rejects(readToken(home, 'github'), {
          code: 'token-file-damaged',
          hint: 'doorward oauth login github',
        })
      const [kept, ...more] = await readdir(home.tokens)
      assert.match(kept ?? '', /^github\.json\.damaged-\d{8}T\d{9}Z$/)
      assert.deepEqual(more, [])
      assert.equal(await readFile(join(home.tokens, kept ?? ''), 'utf8'), text)

      await writeToken(home, record)
      assert.deepEqual(await readToken(home, 'github'), record)
      await removeToken(home, 'github')
      assert.deepEqual(await readdir(home.tokens), [])
    })

  it('leaves nothing of a provider after its removal, not even what was half written', async () => {
    await writeToken(home, record)
    await writeFile(`${path}.0123456789ab.tmp`, JSON.stringify(record), { mode: 0o600 })
    await writeToken(home, { ...record, provider: 'github2' })
    await removeToken(home, 'github')
    assert.deepEqual(await readdir(home.tokens), ['github2.json'])

    await rememberClient(home, 'github', { clientId: 'a', clientSecret: 'b' })
    await rememberClient(home, 'github2', { clientId: 'a' })
    await writeFile(join(home.clients, 'github.json.0123456789ab.tmp'), '{}', { mode: 0o600 })
    assert.equal(await forgetClient(home, 'github'), true)
    assert.equal(await forgetClient(home, 'github'), false)
    assert.deepEqual(await readdir(home.clients), ['github2.json'])
  })

  it('refuses a file that others can read, with the command that fixes it', async () => {
    await writeToken(home, record)
    await chmod(path, 0o644)
    await assert.rejects(readToken(home, 'github'), {
      code: 'token-file-insecure',
      hint: `chmod 600 ${path}`,
    })
    await chmod(path, 0o600)
    assert.deepEqual(await readToken(home, 'github'), record)
  })

  it('refuses a file that it cannot read, with the command that fixes it', async () => {
    await writeToken(home, record)
    await chmod(path, 0o000)
    // Root reads everything.
    if (process.getuid?.() === 0) assert.deepEqual(await readToken(home, 'github'), record)
    else
      await assert.rejects(readToken(home, 'github'), {
        code: 'token-file-insecure',
        hint: `chmod 600 ${path}`,
      })
  })

  it('refuses a link and leaves it where it is', async () => {
    const target = join(await temporaryFolder(), 'planted.json')
    await writeFile(target, JSON.stringify(record), { mode: 0o600 })
    await symlink(target, path)
    await assert.rejects(readToken(home, 'github'), { code: 'token-file-insecure' })
  })

  it('replaces a planted link at a login instead of following it', async () => {
    const target = join(await temporaryFolder(), 'planted.json')
    await writeFile(target, 'untouched')
    await symlink(target, path)
    await writeToken(home, record)
    assert.equal(await readFile(target, 'utf8'), 'untouched')
    assert.deepEqual(await readToken(home, 'github'), record)
  })

  it('refuses a folder in the place of the file', async () => {
    await mkdir(path, { mode: 0o700 })
    await assert.rejects(readToken(home, 'github'), { code: 'token-file-insecure' })
  })

  it('never makes a path of a name that is no provider', async () => {
    for (const provider of ['..', '../run/api', 'a/b'])
      await assert.rejects(readToken(home, provider), { code: 'provider-unknown' })
  })

  it('lists files of providers only', async () => {
    await writeToken(home, record)
    for (const name of [
      'README',
      '.hidden.json',
      'github.json.0a1b2c.tmp',
      'google.json.damaged-1',
    ])
      await writeFile(join(home.tokens, name), '')
    assert.deepEqual(await tokenProviders(home), ['github', 'google'])
  })

  it('stops only the provider whose file cannot be used', async () => {
    await writeToken(home, record)
    await writeFile(join(home.tokens, 'google.json'), '{', { mode: 0o600 })
    await writeFile(join(home.tokens, 'slack.json'), '{}', { mode: 0o644 })
    await chmod(join(home.tokens, 'slack.json'), 0o644)
    const unused = () => undefined
    const log = { info: unused, warn: unused, error: unused }
    const sources = { home, gateway: gatewayOf({}), env: {}, log, announce: unused }
    assert.deepEqual(
      (await listTokens(sources)).map(({ provider, status }) => [provider, status]),
      [
        ['github', 'ok'],
        ['google', 'needs-login'],
        ['slack', 'needs-login'],
      ],
    )
    assert.deepEqual(
      (await listProblems(sources)).map(({ code }) => code),
      ['token-file-damaged', 'token-file-insecure'],
    )
    assert.deepEqual(
      (await listProviders(sources)).map(({ provider, status }) => [provider, status]),
      [
        ['github', 'ok'],
        ['google', 'needs-login'],
        ['slack', 'needs-login'],
      ],
    )
  })

  it('calls a token expired while it can be refreshed, else needing a login', () => {
    const now = Date.parse('2031-01-01T00:00:00.000Z')
    assert.equal(toSummary(record, now).status, 'expired')
    const { refreshToken: _, ...unrefreshable } = record
    assert.equal(toSummary(unrefreshable, now).status, 'needs-login')
    assert.equal(toSummary({ ...unrefreshable, expiresAt: null }, now).status, 'ok')
  })

  it('says until when a login can renew its token, where the provider has said so', () => {
    const refreshExpiresAt = '2031-06-01T00:00:00.000Z'
    assert.equal(toSummary({ ...record, refreshExpiresAt }, 0).loginExpiresAt, refreshExpiresAt)
    assert.equal('loginExpiresAt' in toSummary(record, 0), false)
  })
})
