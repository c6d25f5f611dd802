import assert from 'node:assert/strict'
import { readFile, rm } from 'node:fs/promises'
import { isAlive } from '../../../../shared/home/lock.ts'
import { startHeldAgent, untilDead } from '../../../support/daemon/restart.ts'
import { answers, resultOf, run, start } from '../../support/cli.ts'
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

  it('says what it lost at its end', async function () {
    if (process.platform === 'win32') return this.skip()
    const agent = await startHeldAgent()
    const home = await newHome({
      webhooks: 'webhooks:\n  - { path: /a, agent: held, prompt_template: x }\n',
      agents: `agents:\n  held: { kind: http, url: "${agent.url}" }\n`,
      gateway: 'queue: { drain_timeout: 1ms }\noauth: { callback_port: 0 }\n',
    })
    const child = start(['daemon', 'start', '--foreground'], { home })
    const ended = resultOf(child)
    while (!(await answers(home))) assert.equal(child.exitCode, null)
    for (const stdin of ['{"n":1}', '{"n":2}'])
      assert.equal((await run(['webhook', 'send', '/a', '-'], { home, stdin })).code, 0)
    await agent.next()
    child.kill('SIGTERM')
    const { code, stderr } = await ended
    agent.close()
    assert.equal(code, 0)
    assert.match(
      stderr,
      /^doorward: 2 accepted events failed or did not run before the stop; the log names them: deliver them again from the sender$/m,
    )
    return undefined
  })

  it('stays in the foreground over a restart, and ends with the daemon that took over', async function () {
    if (process.platform === 'win32') return this.skip()
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const home = await newHome()
      const child = start(['daemon', 'start', '--foreground'], { home })
      const ended = resultOf(child)
      while (!(await answers(home))) assert.equal(child.exitCode, null)
      await run(['daemon', 'restart'], { home })
      const second = JSON.parse((await run(['daemon', 'restart', '--json'], { home })).stdout) as {
        pid: number
        previous: { pid: number }
      }
      assert.notEqual(second.previous.pid, child.pid)
      await untilDead(second.previous.pid)
      assert.equal(await answers(home), true)
      // It is no end of the daemon that nothing tells where it is.
      if (signal === 'SIGTERM') {
        await rm(home.daemonJson)
        while (!(await answers(home))) assert.equal(child.exitCode, null)
      }
      assert.equal(child.exitCode, null)
      if (signal === 'SIGTERM') child.kill(signal)
      else process.kill(second.pid, signal)
      assert.equal((await ended).code, signal === 'SIGTERM' ? 0 : 1)
      assert.equal(isAlive(second.pid), false)
    }
    return undefined
  })
})
