import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { answers, resultOf, start } from '../../support/cli.ts'
import { type Running, startedHomes } from '../../support/started-homes.ts'

describe('cli: daemon start --foreground', () => {
  const { newHome } = startedHomes()

  it('is the daemon itself in the foreground, and ends by SIGTERM', async function () {
    if (process.platform === 'win32') return this.skip()
    const home = await newHome()
    const child = start(['daemon', 'start', '--foreground'], { home })
    const ended = resultOf(child)
    while (!(await answers(home))) assert.equal(child.exitCode, null)
    const { pid } = JSON.parse(await readFile(home.daemonJson, 'utf8')) as Running
    assert.equal(pid, child.pid)
    child.kill('SIGTERM')
    const { code, stdout, stderr } = await ended
    assert.deepEqual([code, stdout], [0, ''])
    assert.match(stderr, /^doorward \S+ at http:\/\/127\.0\.0\.1:\d+, log in .*daemon\.log\n$/)
  })

  it('says where it is as a document with --json', async function () {
    if (process.platform === 'win32') return this.skip()
    const home = await newHome()
    const child = start(['daemon', 'start', '--foreground', '--json'], { home })
    const ended = resultOf(child)
    while (!(await answers(home))) assert.equal(child.exitCode, null)
    const told = JSON.parse(await readFile(home.daemonJson, 'utf8')) as Running
    child.kill('SIGTERM')
    const { code, stdout, stderr } = await ended
    assert.deepEqual([code, stderr], [0, ''])
    assert.deepEqual(JSON.parse(stdout), { ...told, running: true })
    return undefined
  })
})
