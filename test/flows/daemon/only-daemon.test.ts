import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { lockHome } from '../../../shared/home/lock.ts'
import type { Status } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { StartMessage } from '../../../shared/client/spawn.ts'
import { spawnDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { temporaryHome } from '../../support/temporary.ts'
import { daemonFile, ended, startsAndStops, tried } from '../../support/daemon/starts.ts'

describe('the only daemon of a home', () => {
  it('refuses a second one, naming its pid, and goes on', async () => {
    const first = await startDaemon()
    for (const port of ['0', new URL(first.url).port]) {
      const { code, stderr } = await tried(first.home, { DOORWARD_PORT: port })
      assert.equal(code, 1)
      assert.equal(
        stderr,
        `doorward: a daemon with pid ${first.process.pid} already runs on ${first.home.root}\n` +
          'hint: doorward daemon status, or doorward daemon restart\n',
      )
    }
    assert.equal((await daemonFile(first.home)).pid, first.process.pid)
    assert.equal((await first.client.get<Status>('/status')).url, first.url)
    assert.equal(await first.stop(), 0)
  })

  it('leaves files that the next start removes when it is killed', async () => {
    const first = await startDaemon()
    first.client.close()
    first.process.kill('SIGKILL')
    await once(first.process, 'exit')
    assert.deepEqual((await readdir(first.home.run)).toSorted(), [
      'api.token',
      'daemon.json',
      'daemon.lock',
    ])
    await startsAndStops(first.home)
  })

  it('removes the files of a start that was killed, and no others', async () => {
    const home = await temporaryHome()
    const schema = join(home.config, 'schema')
    for (const folder of [home.run, schema]) await mkdir(folder, { mode: 0o700 })
    const left = [
      join(home.root, '.env.0123456789ab.tmp'),
      join(schema, 'gateway.json.0123456789ab.tmp'),
      ...[
        'daemon.json.0123456789ab.tmp',
        'api.token.0123456789ab.tmp',
        '.probe-999999999',
        'daemon.lock.999999999-0123456789ab',
        'daemon.lock.after-0123456789ab',
        'tray.lock.999999999-0123456789ab',
        'config.lock.999999999-0123456789ab',
      ].map((name) => join(home.run, name)),
    ]
    for (const path of left) await writeFile(path, '999999999 1 stale')
    // Killed between making a file and writing into it.
    for (const name of ['daemon.lock.999999999-abcdef012345', 'daemon.lock.after-abcdef012345']) {
      await writeFile(join(home.run, name), '')
      left.push(join(home.run, name))
    }
    const others = [
      `daemon.lock.${process.pid}-cdef01234567`,
      `.probe-${process.pid}`,
      'notes.txt.tmp',
    ]
    for (const name of others) await writeFile(join(home.run, name), `${process.pid} ? mine`)
    const fresh = `daemon.lock.${process.pid}-abcdef012345`
    await writeFile(join(home.run, fresh), '')
    others.push(fresh)
    assert.equal(await (await startDaemon({ home })).stop(), 0)
    for (const path of left) assert.equal(existsSync(path), false, path)
    assert.deepEqual((await readdir(home.run)).toSorted(), [...others, 'api.token'].toSorted())
  })

  it('is exactly one of ten that start at the same time after a crash', async () => {
    const first = await startDaemon()
    first.client.close()
    first.process.kill('SIGKILL')
    await once(first.process, 'exit')

    const children = Array.from({ length: 10 }, () => spawnDaemon(first.home))
    const lives = (child: ChildProcess) =>
      new Promise<undefined>((resolve) => {
        child.once('message', (message: StartMessage) => {
          if ('url' in message) resolve(undefined)
        })
      })
    const outcomes = await Promise.all(
      children.map((child) => Promise.race([lives(child), ended(child)])),
    )
    const living = children.filter((_, index) => outcomes[index] === undefined)
    assert.equal(living.length, 1)
    assert.deepEqual([...new Set(outcomes.flatMap((end) => end?.code ?? []))], [1])
    const [winner] = living
    assert.ok(winner)
    const client = await connect(first.home)
    assert.equal(client.daemon.pid, winner.pid)
    client.close()
    winner.disconnect()
    winner.kill('SIGTERM')
    assert.equal((await once(winner, 'exit'))[0], 0)
    assert.deepEqual(await readdir(first.home.run), ['api.token'])
  }).timeout(60_000)

  it('replaces a stale lock, whatever it contains and however many processes try', async () => {
    for (const stale of ['999999999 1', '999999999 1 abc', 'garbage', '', '-1', '0 0 0']) {
      const home = await temporaryHome()
      await mkdir(home.run, { mode: 0o700 })
      await writeFile(join(home.run, 'daemon.lock'), stale)
      for (let round = 0; round < 3; round += 1) {
        const outcomes = await Promise.allSettled(
          Array.from({ length: 12 }, async () => lockHome(home)),
        )
        const unlocks = outcomes.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
        assert.equal(unlocks.length, 1, stale)
        for (const one of outcomes)
          if (one.status === 'rejected') {
            assert.ok(one.reason instanceof DoorwardError)
            assert.equal(one.reason.code, 'already-running')
          }
        // The next round finds a lock and a claim of takers that were killed in the middle.
        const lock = await readFile(join(home.run, 'daemon.lock'), 'utf8')
        await unlocks[0]?.()
        assert.deepEqual(await readdir(home.run), [])
        await writeFile(join(home.run, 'daemon.lock'), lock.replace(/^\d+/, '999999999'))
      }
      await rm(home.root, { recursive: true })
    }
  })

  it('replaces a stale lock when another process was killed while it did that', async () => {
    const home = await temporaryHome()
    await mkdir(home.run, { mode: 0o700 })
    const path = join(home.run, 'daemon.lock')
    await writeFile(path, '999999999 1 stale')
    // Were it not this name, the claim would be left there.
    const nonce = createHash('sha256').update('999999999 1 stale').digest('hex').slice(0, 12)
    await writeFile(`${path}.after-${nonce}`, '999999998 1 claim')
    const unlock = await lockHome(home)
    assert.deepEqual(await readdir(home.run), ['daemon.lock'])
    await unlock()
    assert.deepEqual(await readdir(home.run), [])
  })
})
