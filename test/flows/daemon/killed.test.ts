import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeAgentFolder } from '../../../daemon/agents/workspace.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { fixtureAgent, isRunning, waitForProcessExit } from '../../support/fixtures.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'
import { untilText } from '../../support/until-text.ts'

type RunRecord = { readonly pid: number; readonly folder: string }

const readRecords = async (run: string): Promise<RunRecord[]> => {
  const folder = join(run, 'agents')
  const names = await readdir(folder).catch(() => [])
  return Promise.all(
    names.map(async (name) => {
      const lines = (await readFile(join(folder, name), 'utf8')).trimEnd().split('\n')
      return Object.assign(
        {},
        ...lines.map((line) => JSON.parse(line) as Partial<RunRecord>),
      ) as RunRecord
    }),
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
    assert.ok(record && pids[0] === record.pid && existsSync(record.folder))
    assert.ok(record.folder.startsWith(tmpdir()))

    first.client.close()
    const ended = once(first.process, 'exit')
    first.process.kill('SIGKILL')
    await ended
    for (const pid of pids) assert.equal(await isRunning(pid), true)

    const second = await startDaemon({ home: first.home })
    for (const pid of pids) await waitForProcessExit(pid)
    assert.equal(existsSync(record.folder), false)
    assert.deepEqual(await readRecords(first.home.run), [])
    assert.equal(await second.stop(), 0)
    assert.match(
      await readFile(first.home.log, 'utf8'),
      /"agents":1.*agents of a daemon that was killed/,
    )
  })

  it('leaves no agent that the next start misses, even when it is killed while one starts', async function () {
    // Other systems do not report the environment of a process.
    if (process.platform !== 'linux') this.skip()
    const folder = await temporaryFolder()
    // Before the daemon has its pid.
    const script = 'kill -9 $PPID; echo $$ > pid.tmp; mv pid.tmp pid; sleep 600'
    const first = await startDaemon({
      webhooks: 'webhooks:\n  - { path: /a, agent: murderer, prompt_template: x }\n',
      agents: `agents:\n  murderer: { kind: command, command: [sh, -c, '${script}'], cwd: '${folder}' }\n`,
    })
    first.client.close()
    const ended = once(first.process, 'exit')
    const headers = { 'content-type': 'application/json' }
    await send(`${first.url}/a`, { headers, body: '{}' }).catch(() => undefined)
    await ended
    const pid = Number(await untilText(folder, 'pid', /./))
    assert.equal(await isRunning(pid), true)

    const second = await startDaemon({ home: first.home })
    await waitForProcessExit(pid)
    assert.deepEqual(await readdir(join(first.home.run, 'agents')), [])
    assert.equal(await second.stop(), 0)
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

  it('leaves nothing that makes the next start kill another program or remove a foreign folder', async () => {
    const home = await temporaryHome()
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => {}, 60000)'], {
      detached: true,
      stdio: 'ignore',
    })
    const precious = await temporaryFolder()
    const agents = join(home.run, 'agents')
    await mkdir(agents, { recursive: true, mode: 0o700 })
    const records = {
      'reused.json': JSON.stringify({ pid: stranger.pid, start: '1', folder: precious }),
      'unknown.json': JSON.stringify({
        pid: stranger.pid,
        folder: `${tmpdir()}/doorward-agent-x/..`,
      }),
      'all.json': '{"pid":1,"start":"1"}',
      'broken.json': '{"pid":',
      // No process has this mark.
      'starting.json': JSON.stringify({ mark: '1-2', folder: precious }),
    }
    for (const [name, text] of Object.entries(records)) await writeFile(join(agents, name), text)
    const daemon = await startDaemon({ home })
    assert.equal(await daemon.stop(), 0)
    assert.equal(await isRunning(stranger.pid ?? 0), true)
    assert.equal(existsSync(precious), true)
    assert.deepEqual(await readdir(agents), [])
    const gone = once(stranger, 'exit')
    stranger.kill('SIGKILL')
    await gone
  })
})
