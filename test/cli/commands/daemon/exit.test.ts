import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { startHeldAgent } from '../../../support/daemon/restart.ts'
import { answers, resultOf, run, start, untilSaid } from '../../support/cli.ts'
import { startContractServer } from '../../support/contract-server.ts'
import { type Running, startedHomes } from '../../support/started-homes.ts'

describe('cli: a daemon that is ending', () => {
  const { newHome, startIn, stopAtEnd } = startedHomes()

  describe('one that is stopped and still finishes', () => {
    it('is waited for by what starts one', async () => {
      for (const [args, said] of [
        [['daemon', 'start'], /^started: /],
        [['daemon', 'restart'], /^started: /],
        [['webhook', 'send', '/a', '-'], /^evt_\w+ accepted\n$/],
      ] as const) {
        const { home, agent, pid, stopping } = await stopWhileAnAgentRuns()
        const next = start(args, { home, stdin: '{}' })
        await untilSaid(next, 'stderr', waitingFor(pid))
        agent.answer('late')
        const { code, stdout, stderr } = await resultOf(next)
        assert.equal(code, 0, stderr)
        assert.match(stdout, said)
        assert.equal((await stopping).stdout, `stopped (pid ${pid})\n`)
        assert.equal(await answers(home), true)
        agent.close()
      }
    })

    it('is said to be ending', async () => {
      const { home, agent, pid, stopping } = await stopWhileAnAgentRuns()
      const said = await run(['daemon', 'status'], { home })
      assert.equal(said.code, 0)
      assert.match(said.stdout, /^running: .*\nending: {2}when an accepted event is finished\n$/)
      const { stdout } = await run(['daemon', 'status', '--json'], { home })
      const status = JSON.parse(stdout) as Running & { stopping?: boolean }
      assert.deepEqual([status.running, status.pid, status.stopping], [true, pid, true])
      const screen = await run(['status'], { home })
      assert.match(screen.stdout, /^ending when an accepted event is finished\nqueue 1 running/m)
      const examined = await run(['doctor'], { home })
      const words =
        /at http\S+ \(pid \d+\), but it was stopped: it\s+accepts nothing new and exits when\s+an\s+accepted event is finished\s+→ doorward daemon start/
      assert.match(examined.stdout, words)
      agent.answer('late')
      await stopping
      agent.close()
    })

    it('is not waited for with --no-start', async () => {
      const { home, agent, stopping } = await stopWhileAnAgentRuns()
      for (const args of [
        ['daemon', 'restart'],
        ['webhook', 'send', '/a', '-'],
        ['oauth', 'login', 'github', '--client-id', 'x'],
      ]) {
        const result = await run([...args, '--no-start', '--json'], { home, stdin: '{}' })
        assert.equal(result.code, 1)
        assert.equal((JSON.parse(result.stderr) as { code: string }).code, 'stopping')
      }
      agent.answer('late')
      await stopping
      agent.close()
    })

    it('is waited for until Ctrl-C, also by what would have waited for its answer', async () => {
      const { home, agent, pid, stopping } = await stopWhileAnAgentRuns()
      for (const args of [
        ['webhook', 'send', '/a', '-', '--wait'],
        ['oauth', 'login', 'github', '--client-id', 'x'],
      ]) {
        const waiting = start(args, { home, stdin: '{}' })
        const ended = once(waiting, 'close')
        await untilSaid(waiting, 'stderr', waitingFor(pid))
        waiting.kill('SIGINT')
        await ended
        assert.equal(waiting.signalCode, 'SIGINT')
      }
      agent.answer('late')
      await stopping
      agent.close()
    })

    const waitingFor = (pid: number) =>
      new RegExp(`pid ${pid}\\) is stopping: waiting for it to exit`)

    const stopWhileAnAgentRuns = async () => {
      const agent = await startHeldAgent()
      const home = await newHome({
        webhooks: 'webhooks:\n  - { path: /a, agent: held, prompt_template: x }\n',
        agents: `agents:\n  held: { kind: http, url: "${agent.url}" }\n`,
      })
      const { pid } = await startIn(home)
      const sent = await run(['webhook', 'send', '/a', '-'], { home, stdin: '{}' })
      assert.equal(sent.code, 0, sent.stderr)
      const { answer } = await agent.next()
      const child = start(['daemon', 'stop'], { home })
      await untilSaid(child, 'stderr', /waiting for 1 running/)
      return { home, pid, agent: { answer, close: agent.close }, stopping: resultOf(child) }
    }
  })

  for (const [command, exitCode, answer] of [
    ['daemon stop', 0, /^stopped \(pid \d+\)\n$/],
    ['daemon restart', 0, /^started: /],
    ['daemon start', 0, /^started: /],
    // The one that is started in its place has no login.
    ['oauth token github', 4, /^$/],
  ] as const)
    it(`takes a daemon that ends by another's word meanwhile for what it is: ${command}`, async () => {
      const daemon = spawn(process.execPath, ['-e', 'process.stdin.resume()'])
      const server = await startContractServer((_call, response) => {
        daemon.kill()
        response.destroy()
        return undefined
      })
      const home = stopAtEnd(server.home)
      const told = JSON.parse(await readFile(home.daemonJson, 'utf8')) as object
      await writeFile(home.daemonJson, JSON.stringify({ ...told, pid: daemon.pid }))
      const { code, stdout, stderr } = await run(command.split(' '), { home })
      await server.close()
      assert.equal(code, exitCode, stderr)
      assert.match(stdout, answer)
    })
})
