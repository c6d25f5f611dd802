import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive } from '../../../../shared/home/lock.ts'
import { run } from '../../support/cli.ts'
import { type Running, startedHomes } from '../../support/started-homes.ts'

describe('cli: daemon restart', () => {
  const { newHome, startIn } = startedHomes()

  it('restarts it as another process at the same address, and says which', async () => {
    const home = await newHome()
    const before = await startIn(home)
    const { code, stdout } = await run(['daemon', 'restart', '--json'], { home })
    assert.equal(code, 0)
    const after = JSON.parse(stdout) as Running & { previous: { pid: number } }
    assert.notEqual(after.pid, before.pid)
    assert.deepEqual([after.running, after.url, after.previous.pid], [true, before.url, before.pid])
    const again = await run(['daemon', 'restart'], { home })
    const { pid } = JSON.parse(await readFile(home.daemonJson, 'utf8')) as Running
    assert.equal(again.stdout, `restarted: ${before.url} (pid ${pid}, before ${after.pid})\n`)
    const status = await run(['daemon', 'status', '--json'], { home })
    assert.equal((JSON.parse(status.stdout) as Running).pid, pid)
  })

  it('starts one where none runs to be restarted', async () => {
    const home = await newHome()
    const { code, stdout } = await run(['daemon', 'restart'], { home })
    assert.equal(code, 0)
    assert.match(stdout, /^started: /)
  })

  it('stops and starts one that cannot hand over', async () => {
    const home = await newHome()
    // As on Windows, and as of an older version.
    const other = 'Object.defineProperty(process, "platform", { value: "win32" })'
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(other)}`
    const before = await startIn(home, { NODE_OPTIONS })
    const { code, stdout, stderr } = await run(['daemon', 'restart'], { home })
    assert.equal(code, 0, stderr)
    assert.match(stderr, new RegExp(`stopped \\(pid ${before.pid}\\)`))
    assert.match(stdout, /^started: /)
    assert.equal(isAlive(before.pid), false)
  })

  it('leaves the running one alone when the configuration cannot be used', async () => {
    const home = await newHome()
    const { pid } = JSON.parse(
      (await run(['daemon', 'start', '--json'], { home })).stdout,
    ) as Running
    await writeFile(join(home.config, 'webhooks.yaml'), 'webhooks: 1\n')
    const { code, stdout, stderr } = await run(['daemon', 'restart', '--json'], { home })
    assert.deepEqual([code, stdout], [1, ''])
    assert.equal((JSON.parse(stderr) as { code: string }).code, 'config-invalid')
    assert.equal(isAlive(pid), true)
  })
})
