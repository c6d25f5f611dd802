import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { findSandbox } from '../../../shared/sandbox/probe.ts'
import { send } from '../../support/servers/http.ts'

/* docs/containers.md: the daemon as the first process of a container, and below an init. */

/** Leaves processes behind, and answers with those that it sees, such as `9 (sleep) Z 1 …`. */
const agents = `agents:
  lister: { kind: command, command: [sh, -c, 'sleep 0 & sleep 0 & cat /proc/[0-9]*/stat; true'] }
`
const webhooks = 'webhooks:\n  - { path: /hook, agent: lister, prompt_template: "{{event.a}}" }\n'

const startIn = async (...more: string[]): Promise<RunningDaemon> => {
  const folders = ['--bind', '/', '/', '--dev', '/dev', '--proc', '/proc']
  return startDaemon({
    agents,
    webhooks,
    under: ['bwrap', '--unshare-pid', ...more, ...folders, '--'],
  })
}

const run = async (daemon: RunningDaemon, a: string): Promise<string> => {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ a })
  const reply = await send(`${daemon.url}/hook`, { method: 'POST', headers, body })
  return (await untilFinished(daemon, String(reply.json()['id']))).result ?? ''
}

/** The pid outside of the first process that is no bwrap. */
const findInside = async (pid: number): Promise<number> => {
  if ((await readFile(`/proc/${pid}/comm`, 'utf8')) !== 'bwrap\n') return pid
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')
  return findInside(Number(children.split(' ')[0]))
}

/** As `docker stop` does it. */
const stop = async ({ client, process: child }: RunningDaemon): Promise<number | null> => {
  client.close()
  const ended = once(child, 'exit')
  process.kill(await findInside(child.pid ?? 0), 'SIGTERM')
  await ended
  return child.exitCode
}

describe('the daemon in a container', () => {
  before(async function () {
    // CI has bubblewrap, which makes the container here.
    if (process.platform !== 'linux') this.skip()
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
  })

  it('leaves no zombie of an agent under an init', async () => {
    const daemon = await startIn()
    await run(daemon, 'first')
    const states = await run(daemon, 'second')
    assert.match(states, /^1 \(bwrap\) S /m)
    assert.doesNotMatch(states, /\(sleep\) Z 1 /)
    assert.equal(await stop(daemon), 0)
  })

  it('answers as the first process itself, and ends at SIGTERM', async () => {
    const daemon = await startIn('--as-pid-1')
    assert.doesNotMatch(await run(daemon, 'first'), /\(bwrap\)/)
    assert.equal(await stop(daemon), 0)
  })
})
