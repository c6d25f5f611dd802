import assert from 'node:assert/strict'
import { once } from 'node:events'
import { lstat, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Home, prepareHome } from '../../shared/home/home.ts'
import { approve, visit } from '../support/desktop/browser.ts'
import { startAuthorizationServer } from '../support/providers/authorization-server.ts'
import { spawnDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { startOAuthApp } from '../support/providers/oauth-app.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'

/*
 * A home was open to others once (a copy from a shared disk, a wrong umask), and was closed as doorward
 * asks for. What others left in it must not lead anything of ours elsewhere, or anything of theirs in.
 */

const untouched = 'what stood here before\n'

/** A file elsewhere, and a link to it that stands in the home. */
const plant = async (path: string): Promise<string> => {
  const elsewhere = join(await temporaryFolder(), 'elsewhere')
  await writeFile(elsewhere, untouched, { mode: 0o600 })
  await rm(path, { force: true })
  await symlink(elsewhere, path)
  return elsewhere
}

const openHome = async (): Promise<Home> => {
  const home = await temporaryHome()
  await prepareHome(home)
  return home
}

describe('a link that was planted in a home', () => {
  for (const name of ['run/daemon.json', 'run/daemon.lock', 'logs/daemon.log'])
    it(`as ${name} leads nothing that a daemon writes elsewhere`, async () => {
      const home = await openHome()
      const path = join(home.root, name)
      const elsewhere = await plant(path)
      const daemon = await startDaemon({ home })
      assert.equal((await lstat(path)).isSymbolicLink(), false)
      assert.equal(await daemon.stop(), 0)
      assert.equal(await readFile(elsewhere, 'utf8'), untouched)
    })

  for (const name of ['run/api.token', '.env'])
    it(`as ${name} keeps the daemon from starting, and is not read`, async () => {
      const home = await openHome()
      const elsewhere = await plant(join(home.root, name))
      const child = spawnDaemon(home)
      let stderr = ''
      child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
      await once(child, 'close')
      assert.equal(child.exitCode, 78)
      assert.match(stderr, /is a symbolic link/)
      assert.equal(await readFile(elsewhere, 'utf8'), untouched)
    })

  it('as a token or a client is neither read nor written through', async () => {
    const server = await startAuthorizationServer()
    const home = await openHome()
    const [token, client] = [
      await plant(join(home.tokens, 'mine.json')),
      await plant(join(home.clients, 'mine.json')),
    ]
    const gateway = {
      providers: { mine: { issuer: server.issuer, scopes: ['openid'], client_id: 'public' } },
    }
    const app = await startOAuthApp({ gateway, home })
    try {
      const refused = await app.send<{ code: string }>('GET', '/oauth/tokens/mine/access')
      assert.notEqual(refused.status, 200)
      const started = await app.send<{ code?: string; authorizationUrl?: string; loginId: string }>(
        'POST',
        '/oauth/start',
        { provider: 'mine', clientId: 'public' },
      )
      if (started.body.authorizationUrl !== undefined) {
        await visit(await approve(started.body.authorizationUrl))
        await app.ended(started.body.loginId)
      }
      assert.equal(await readFile(token, 'utf8'), untouched)
      assert.equal(await readFile(client, 'utf8'), untouched)
    } finally {
      await app.close()
      await server.close()
    }
  })

  it('as a folder of logs in another place of this user is followed, as people have them', async () => {
    const home = await openHome()
    const elsewhere = await temporaryFolder()
    await rm(home.logs, { recursive: true })
    await symlink(elsewhere, home.logs)
    const daemon = await startDaemon({ home })
    assert.equal(await daemon.stop(), 0)
    assert.match(await readFile(join(elsewhere, 'daemon.log'), 'utf8'), /^\{/)
  })

  it('as a folder that belongs to another user is refused', async function () {
    const home = await openHome()
    await rm(home.logs, { recursive: true })
    // Of root; for root, nothing on a machine belongs to anybody else for certain but what it gives away.
    const foreign = process.getuid?.() === 0 ? await givenAway() : '/usr'
    await symlink(foreign, home.logs)
    const child = spawnDaemon(home)
    let stderr = ''
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    await once(child, 'close')
    assert.equal(child.exitCode, 78)
    assert.match(stderr, /belongs to another user/)
  })
})

const givenAway = async (): Promise<string> => {
  const { chown } = await import('node:fs/promises')
  const folder = join(await temporaryFolder(), 'theirs')
  await mkdir(folder)
  await chown(folder, 65_534, 65_534)
  return folder
}
