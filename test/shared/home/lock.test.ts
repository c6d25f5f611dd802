import assert from 'node:assert/strict'
import { readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { lockHome } from '../../../shared/home/lock.ts'
import { type Home, prepareHome } from '../../../shared/home/home.ts'
import { temporaryHome } from '../../support/temporary.ts'

describe('the lock of a home', () => {
  let home: Home
  let lock: string

  beforeEach(async () => {
    home = await temporaryHome()
    await prepareHome(home)
    lock = join(home.run, 'daemon.lock')
  })

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

  it('is replaced when its pid was reused by another process', async function () {
    if (process.platform !== 'linux') return this.skip()
    await writeFile(lock, `${process.pid} 1`)
    await (
      await lockHome(home)
    )()
    return undefined
  })

  it('is not removed by a process that no longer owns it', async () => {
    const release = await lockHome(home)
    await writeFile(lock, '1 1')
    await release()
    assert.equal(await readFile(lock, 'utf8'), '1 1')
  })
})
