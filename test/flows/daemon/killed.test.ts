import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, readdir, readlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAgentFolder } from '../../../daemon/agents/workspace.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { fixtureAgent, isRunning, waitForProcessExit } from '../../support/fixtures.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'
import { untilText } from '../../support/until-text.ts'

type RunRecord = { readonly pid: number }

const readRecords = async (run: string): Promise<RunRecord[]> => {
  const folder = join(run, 'agents')
  const names = await readdir(folder).catch(() => [])
  return Promise.all(
    names.map(async (name) => JSON.parse(await readFile(join(folder, name), 'utf8')) as RunRecord),
  )
}

describe('a daemon that was killed', () => {
  it('leaves agents that the next start kills, with their children and their folder', async function () {
    // Other systems do not report when a process started, so none is killed.
    if (process.platform !== 'linux') this.skip()
    const folder = await temporaryFolder()
    const command = JSON.stringify(fixtureAgent('ignores-sigterm', join(folder, 'pids')))
    const first = await startDaemon({
      webhooks: 'webhooks:\n  - { path: /a, agent: stubborn, prompt_template: x }\n',
      agents: `agents:\n  stubborn: { kind: command, command: ${command} }\n`,
    })
    const headers = { 'content-type': 'application/json' }
    assert.equal((await send(`${first.url}/a`, { headers, body: '{}' })).status, 202)
    const pids = (await untilText(folder, 'pids', /./)).split(' ').map(Number)
    const [record] = await readRecords(first.home.run)
    assert.equal(record?.pid, pids[0])
    const agentFolder = await readlink(`/proc/${record?.pid}/cwd`)
    assert.ok(agentFolder.startsWith(tmpdir()))

    first.client.close()
    const ended = once(first.process, 'exit')
    first.process.kill('SIGKILL')
    await ended
    for (const pid of pids) assert.equal(await isRunning(pid), true)

    const second = await startDaemon({ home: first.home })
    for (const pid of pids) await waitForProcessExit(pid)
    assert.equal(existsSync(agentFolder), false)
    assert.deepEqual(await readRecords(first.home.run), [])
    assert.equal(await second.stop(), 0)
    assert.match(
      await readFile(first.home.log, 'utf8'),
      /"agents":1.*agents of a daemon that was killed/,
    )
  })

  it('leaves no folder of an agent that had not started', async () => {
    const folder = await temporaryFolder()
    const maker = `import { tmpdir } from 'node:os'
      const { makeAgentFolder } = await import(process.argv[1])
      console.log(await makeAgentFolder(tmpdir()))
      process.kill(process.pid, 'SIGKILL')`
    const module = new URL('../../../daemon/agents/workspace.js', import.meta.url).href
    const env = { ...process.env, TMPDIR: folder }
    const child = spawn(process.execPath, ['--input-type=module', '-e', maker, module], { env })
    const [made] = (await Promise.all([once(child.stdout, 'data'), once(child, 'exit')])).flat()
    const left = String(made).trim()
    assert.ok(existsSync(left))
    await writeFile(join(left, 'login.json'), '{}')
    // Of a running process, as after a restart, and a folder that is not ours.
    const kept = [await makeAgentFolder(folder), join(folder, 'doorward-agent-mine')]
    await mkdir(join(folder, 'doorward-agent-mine'))

    const daemon = await startDaemon({ variables: { TMPDIR: folder } })
    assert.equal(await daemon.stop(), 0)
    assert.equal(existsSync(left), false)
    assert.deepEqual(kept.map(existsSync), [true, true])
  })

  it('leaves nothing that makes the next start kill another program', async () => {
    const home = await temporaryHome()
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60000)'], {
      detached: true,
      stdio: 'ignore',
    })
    const agents = join(home.run, 'agents')
    await mkdir(agents, { recursive: true, mode: 0o700 })
    const records = {
      'reused.json': JSON.stringify({ pid: stranger.pid, start: '1' }),
      'unknown.json': JSON.stringify({ pid: stranger.pid }),
      'all.json': '{"pid":1,"start":"1"}',
      'broken.json': '{"pid":',
    }
    for (const [name, text] of Object.entries(records)) await writeFile(join(agents, name), text)
    const daemon = await startDaemon({ home })
    assert.equal(await daemon.stop(), 0)
    assert.equal(await isRunning(stranger.pid ?? 0), true)
    assert.deepEqual(await readdir(agents), [])
    const gone = once(stranger, 'exit')
    stranger.kill('SIGKILL')
    await gone
  })
})
