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
  /** What each reports after all try at the same time. */
  const race = async (rivals: readonly ChildProcess[]): Promise<string[]> =>
    Promise.all(
      rivals.map(async (child) => {
        const reports = once(child, 'message')
        child.send('try')
        return String((await reports)[0])
      }),
    )
  const kill = async (child: ChildProcess) => {
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }

  it('belongs to one process, readable by its owner alone, until it is released', async () => {
    const release = await lockHome(home)
    assert.equal((await stat(lock)).mode & 0o777, 0o600)
    await assert.rejects(lockHome(home), {
      code: 'already-running',
      message: new RegExp(`pid ${process.pid} `),
    })
    await release()
    await release()
    await (
      await lockHome(home)
    )()
    assert.deepEqual(await readdir(home.run), [])
  })

  it('goes to exactly one of several processes that try at the same time', async () => {
    const reports = await race(await start(5))
    assert.deepEqual(reports.toSorted(), [...Array<string>(4).fill('already-running'), 'held'])
  })

  it('goes to exactly one other process each time its owner is killed', async () => {
    let rivals = await start(6)
    while (rivals.length > 1) {
      const reports = await race(rivals)
      assert.deepEqual(
        reports.toSorted(),
        [...Array<string>(reports.length - 1).fill('already-running'), 'held'].toSorted(),
      )
      const owner = rivals[reports.indexOf('held')]
      assert.ok(owner)
      assert.deepEqual(await readdir(home.run), ['daemon.lock'])
      await kill(owner)
      rivals = rivals.filter((rival) => rival !== owner)
    }
  })

  it('is replaced although the previous replacement was killed half way', async () => {
    await writeFile(lock, '0 0 a')
    const second = `${lock}.after-${createHash('sha256').update('0 0 a').digest('hex').slice(0, 12)}`
    await writeFile(second, '0 0 b')
    const release = await lockHome(home)
    assert.deepEqual(await readdir(home.run), ['daemon.lock'])
    await release()
    await writeFile(lock, '0 0 a')
    await writeFile(second, `${process.pid} ?`)
    await assert.rejects(lockHome(home), { code: 'already-running' })
  })

  it('is replaced when its pid was reused by another process', async function () {
    if (process.platform !== 'linux') return this.skip()
    await writeFile(lock, `${process.pid} 1`)
    await (
      await lockHome(home)
    )()
    return undefined
  })

  it('is replaced when it is empty or contains nonsense', async () => {
    for (const text of ['', 'nonsense', '-1 5', '0 0', '1e9 1', '99999999999999999999 1']) {
      await writeFile(lock, text)
      const release = await lockHome(home)
      assert.match(await readFile(lock, 'utf8'), new RegExp(`^${process.pid} `))
      await release()
    }
  })

  it('is not removed by a process that no longer owns it', async () => {
    const release = await lockHome(home)
    await writeFile(lock, '1 1')
    await release()
    assert.equal(await readFile(lock, 'utf8'), '1 1')
  })
})
