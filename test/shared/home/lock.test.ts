import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lockHome } from '../../../shared/home/lock.ts'
import { type Home, prepareHome } from '../../../shared/home/home.ts'
import { temporaryHome } from '../../support/temporary.ts'

const program = fileURLToPath(new URL('../../../../test/fixtures/takes-lock.mjs', import.meta.url))

describe('the lock of a home', () => {
  let home: Home
  let lock: string
  const children = new Set<ChildProcess>()

  beforeEach(async () => {
    home = await temporaryHome()
    await prepareHome(home)
    lock = join(home.run, 'daemon.lock')
  })
  afterEach(() => {
    for (const child of children) child.kill('SIGKILL')
    children.clear()
  })

  /** Processes that are ready to try. */
  const start = async (count: number): Promise<ChildProcess[]> =>
    Promise.all(
      Array.from({ length: count }, async () => {
        const child = fork(program, [home.root])
        children.add(child)
        await once(child, 'message')
        return child
      }),
    )
  /** What each says after all were told to try at once. */
  const race = async (rivals: readonly ChildProcess[]): Promise<string[]> =>
    Promise.all(
      rivals.map(async (child) => {
        const said = once(child, 'message')
        child.send('try')
        return String((await said)[0])
      }),
    )
  const kill = async (child: ChildProcess) => {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  it('is held by one, for its owner alone, until it is let go', async () => {
    const letGo = await lockHome(home)
    assert.equal((await stat(lock)).mode & 0o777, 0o600)
    await assert.rejects(lockHome(home), {
      code: 'already-running',
      message: new RegExp(`pid ${process.pid} `),
    })
    await letGo()
    await letGo()
    await (
      await lockHome(home)
    )()
    assert.deepEqual(await readdir(home.run), [])
  })

  it('goes to exactly one of several processes that try at once', async () => {
    const said = await race(await start(5))
    assert.deepEqual(said.toSorted(), [...Array<string>(4).fill('already-running'), 'held'])
  })

  it('is taken over from a holder that was killed, by exactly one, time and again', async () => {
    let rivals = await start(6)
    while (rivals.length > 1) {
      const said = await race(rivals)
      assert.deepEqual(
        said.toSorted(),
        [...Array<string>(said.length - 1).fill('already-running'), 'held'].toSorted(),
      )
      const holder = rivals[said.indexOf('held')]
      assert.ok(holder)
      assert.deepEqual(await readdir(home.run), ['daemon.lock'])
      await kill(holder)
      rivals = rivals.filter((rival) => rival !== holder)
    }
  })

  it('is taken over though the process that took it over before was killed half way', async () => {
    await writeFile(lock, '0 0 a')
    const second = `${lock}.after-${createHash('sha256').update('0 0 a').digest('hex').slice(0, 12)}`
    await writeFile(second, '0 0 b')
    const letGo = await lockHome(home)
    assert.deepEqual(await readdir(home.run), ['daemon.lock'])
    await letGo()
    await writeFile(lock, '0 0 a')
    await writeFile(second, `${process.pid} ?`)
    await assert.rejects(lockHome(home), { code: 'already-running' })
  })

  it('is taken over when its pid belongs to another process by now', async function () {
    if (process.platform !== 'linux') return this.skip()
    await writeFile(lock, `${process.pid} 1`)
    await (
      await lockHome(home)
    )()
    return undefined
  })

  it('is taken over when it is empty or holds nonsense', async () => {
    for (const text of ['', 'nonsense', '-1 5', '0 0', '1e9 1', '99999999999999999999 1']) {
      await writeFile(lock, text)
      const letGo = await lockHome(home)
      assert.match(await readFile(lock, 'utf8'), new RegExp(`^${process.pid} `))
      await letGo()
    }
  })

  it('is not taken away by one who lets go of it too late', async () => {
    const letGo = await lockHome(home)
    await writeFile(lock, '1 1')
    await letGo()
    assert.equal(await readFile(lock, 'utf8'), '1 1')
  })
})
