import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { EventRecord } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type HeldAgent, restart, startHeldAgent, stopHome } from '../../support/daemon/restart.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { untilText } from '../../support/until-text.ts'

/** What an agent sees of its file. */
type Seen = {
  readonly path: string
  readonly text: string
  readonly mode: number
  readonly folderMode: number
  readonly variables: Readonly<Record<string, string>>
}

const look = `
const { readFileSync, statSync, writeFileSync } = require('node:fs')
const path = process.env.DOORWARD_EVENT_FILE
const seen = {
  path,
  text: readFileSync(path, 'utf8'),
  mode: statSync(path).mode & 0o777,
  folderMode: statSync(require('node:path').dirname(path)).mode & 0o777,
  variables: Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('DOORWARD_'))),
}
`
const body = '{"title": "canary",  "number": 12345678901234567890}'
const json = { 'content-type': 'application/json' }

describe('the event file of an agent', () => {
  let daemon: RunningDaemon
  let held: HeldAgent
  let folder: string
  const agents = () => {
    const program = (script: string) => JSON.stringify([process.execPath, '-e', script])
    const note = (name: string) => `writeFileSync(${JSON.stringify(join(folder, name))}, path)`
    return `
agents:
  looks: { kind: command, event_file: true, command: ${program(`${look}; process.stdout.write(JSON.stringify(seen))`)} }
  fails: { kind: command, event_file: true, command: ${program(`${look}; process.stderr.write(JSON.stringify(seen)); process.exitCode = 3`)} }
  hangs: { kind: command, event_file: true, timeout: 1s, command: ${program(`${look}; ${note('hangs')}; setInterval(() => 0, 1000)`)} }
  stays: { kind: command, event_file: true, command: ${program(`${look}; ${note('stays')}; setInterval(() => 0, 1000)`)} }
  without: { kind: command, command: ${program('process.stdout.write(String(process.env.DOORWARD_EVENT_FILE))')} }
  held: { kind: http, event_file: true, url: "${held.url}", concurrency: 1 }
`
  }
  const webhooks = `webhooks:${['looks', 'fails', 'hangs', 'stays', 'without', 'held']
    .map((name) => `\n  - { path: /${name}, agent: ${name}, prompt_template: "{{event.title}}" }`)
    .join('')}\n`

  before(async () => {
    folder = await temporaryFolder()
    held = await startHeldAgent()
    daemon = await startDaemon({ webhooks, agents: agents() })
  })
  after(async () => {
    held.close()
    await stopHome(daemon.home)
  })

  const post = async (name: string, text = body, headers: Record<string, string> = json) => {
    const reply = await send(`${daemon.url}/${name}`, { headers, body: text })
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  const gone = (path: string) => assert.equal(existsSync(dirname(path)), false)

  it('has the payload as it was sent, for this user only, in memory, and only while the agent runs', async () => {
    const id = await post('looks', body, { ...json, 'x-github-delivery': 'd-1' })
    const seen = JSON.parse((await untilFinished(daemon, id)).result ?? '') as Seen
    assert.equal(seen.text, body)
    assert.deepEqual([seen.mode, seen.folderMode], [0o600, 0o700])
    gone(seen.path)
    const { DOORWARD_EVENT_FILE: path, ...variables } = seen.variables
    assert.equal(path, seen.path)
    assert.deepEqual(variables, {
      DOORWARD_EVENT_ID: id,
      DOORWARD_WEBHOOK: '/looks',
      DOORWARD_DELIVERY_ID: 'd-1',
    })
    const shared = await statfs('/dev/shm').catch(() => undefined)
    if (shared?.type === 0x01021994) assert.match(seen.path, /^\/dev\/shm\/doorward-agent-/)
  })

  it('has the fields of a form as JSON', async () => {
    const id = await post('looks', 'title=a+b&title=c&n=1', {
      'content-type': 'application/x-www-form-urlencoded',
    })
    const { text } = JSON.parse((await untilFinished(daemon, id)).result ?? '') as Seen
    assert.equal((JSON.parse(text) as { n: string }).n, '1')
  })

  it('is there only for agents that ask for it', async () => {
    assert.equal((await untilFinished(daemon, await post('without'))).result, 'undefined')
  })

  it('is removed after a failure, and is there again when the event is retried', async () => {
    const id = await post('fails')
    const look = async () => {
      const { state, detail = '' } = await untilFinished(daemon, id)
      assert.equal(state, 'failed')
      const [, path = ''] = /"path":"([^"]+)"/.exec(detail) ?? []
      assert.match(detail, /canary/)
      gone(path)
      return path
    }
    const first = await look()
    await daemon.client.post<EventRecord>(`/events/${id}/retry`)
    assert.notEqual(await look(), first)
    const large = JSON.stringify({ title: 'x', padding: 'p'.repeat(2.5 * 1024 * 1024) })
    for (const name of ['without', 'without']) await untilFinished(daemon, await post(name, large))
    await assert.rejects(daemon.client.post(`/events/${id}/retry`), {
      code: 'event-not-retryable',
      message: /its payload, which its agent takes as event_file, is no longer in memory/,
    })
  })

  it('is removed after a timeout', async () => {
    const id = await post('hangs')
    const path = await untilText(folder, 'hangs', /event\.json$/)
    assert.equal((await untilFinished(daemon, id)).code, 'agent-timeout')
    gone(path)
  })

  it('is named to a server, also when its event waited over a restart', async () => {
    const ids = [await post('held', '{"title":"one"}')]
    const first = await held.next()
    ids.push(await post('held', '{"title":"two"}'))
    await restart(daemon.client)
    const read = async ({ eventFile = '' }: Awaited<ReturnType<HeldAgent['next']>>) => {
      assert.equal((await stat(eventFile)).mode & 0o777, 0o600)
      return readFile(eventFile, 'utf8')
    }
    assert.equal(await read(first), '{"title":"one"}')
    first.answer('1')
    const second = await held.next()
    assert.equal(await read(second), '{"title":"two"}')
    second.answer('2')
    daemon = { ...daemon, client: await connect(daemon.home) }
    for (const id of ids) assert.equal((await untilFinished(daemon, id)).state, 'done')
    for (const { eventFile = '' } of [first, second]) gone(eventFile)
  })

  it('is removed by the next start when the daemon was killed', async function () {
    // Other systems do not report when a process started.
    if (process.platform !== 'linux') this.skip()
    const other = await startDaemon({ webhooks, agents: agents() })
    await send(`${other.url}/stays`, { headers: json, body })
    const path = await untilText(folder, 'stays', /event\.json$/)
    assert.equal(await readFile(path, 'utf8'), body)
    other.client.close()
    const ended = once(other.process, 'exit')
    other.process.kill('SIGKILL')
    await ended
    assert.ok(existsSync(path))
    const next = await startDaemon({ home: other.home })
    gone(path)
    assert.equal(await next.stop(), 0)
  })
})
