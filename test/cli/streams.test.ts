import assert from 'node:assert/strict'
import { type ServerResponse, createServer } from 'node:http'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import type { EventRecord } from '../../shared/api/api.ts'
import { startDaemon } from '../support/daemon/daemon.ts'
import { type ContractServer, startContractServer } from './support/contract-server.ts'
import {
  hasTerminal,
  resultOf,
  run,
  start,
  startOnTerminal,
  stopStarted,
  untilSaid,
} from './support/cli.ts'

const webhooks = 'webhooks:\n  - { path: /a, agent: echo, prompt_template: "{{event.text}}" }\n'

const record = (id: string, more: Partial<EventRecord> = {}): EventRecord => ({
  id,
  kind: 'webhook',
  webhook: '/a',
  receivedAt: '2026-06-07T10:00:00.000Z',
  state: 'done',
  agent: 'echo',
  attempts: 1,
  durations: {},
  targets: [],
  ...more,
})

describe('cli: streams', () => {
  it('follows events as JSON lines, of one webhook, and ends with 130', async () => {
    const records = [record('evt_1'), record('evt_2', { webhook: '/b' }), record('evt_3')]
    const server = await startContractServer(({ path }, response) => {
      if (path === '/webhooks') return [200, { webhooks: [] }]
      return path === '/events/stream' ? stream(response, records) : [200, { events: [] }]
    })
    const child = start(['events', '--follow', '--json', '--webhook', '/a'], { home: server.home })
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /evt_3/)
    child.kill('SIGINT')
    const { code, stdout } = await ended
    await server.close()
    assert.equal(code, 130)
    const lines = stdout.trimEnd().split('\n')
    assert.deepEqual(
      lines.map((line) => JSON.parse(line) as EventRecord),
      [record('evt_1'), record('evt_3')],
    )
  })

  it('shows what happens from now on, and comes back when the daemon was restarted', async () => {
    const { home, stop } = await startDaemon({ webhooks })
    const send = async (text: string) =>
      run(['webhook', 'send', '/a', '-', '--wait'], { home, stdin: JSON.stringify({ text }) })
    await send('before')
    const child = start(['events', '--follow'], { home })
    const ended = resultOf(child)
    await untilSaid(child, 'stderr', /following/)
    const first = untilSaid(child, 'stdout', /✓ done .*: now /m)
    await send('now')
    await first
    const gone = untilSaid(child, 'stderr', /the daemon stopped/)
    await stop()
    await gone
    const back = untilSaid(child, 'stderr', /the daemon is back/)
    await run(['daemon', 'start'], { home })
    await back
    const second = untilSaid(child, 'stdout', /✓ done .*: again /m)
    await send('again')
    await second
    child.kill('SIGINT')
    const { code, stdout } = await ended
    await stopStarted(home)
    assert.equal(code, 130)
    assert.doesNotMatch(stdout, /before/)
  })

  it('waits on while another program has the port of the daemon that has gone', async () => {
    const { home, stop } = await startDaemon({ webhooks })
    const child = start(['events', '--follow'], { home })
    const ended = resultOf(child)
    await untilSaid(child, 'stderr', /following/)
    const gone = untilSaid(child, 'stderr', /the daemon stopped/)
    await stop()
    await gone
    const stranger = createServer((_, response) => response.end('hello')).listen(0, '127.0.0.1')
    const asked = once(stranger, 'request')
    await once(stranger, 'listening')
    const url = `http://127.0.0.1:${(stranger.address() as AddressInfo).port}`
    await writeFile(home.daemonJson, JSON.stringify({ pid: process.pid, url }))
    await asked
    stranger.close()
    await rm(home.daemonJson)
    const back = untilSaid(child, 'stderr', /the daemon is back/)
    await run(['daemon', 'start'], { home })
    await back
    child.kill('SIGINT')
    assert.equal((await ended).code, 130)
    await stopStarted(home)
  })

  it('goes on after another daemon took over, without losing or repeating a change', async () => {
    const old = record('evt_old')
    const first = record('evt_1', { state: 'running' })
    const asked: (string | undefined)[] = []
    const opened: ServerResponse[] = []
    const server = await startContractServer(({ path, lastEventId }, response) => {
      if (path !== '/events/stream') return [200, { events: [old] }]
      asked.push(lastEventId)
      opened.push(response)
      const told = [
        [],
        [old, first],
        [record('evt_1'), record('evt_2'), record('evt_old', { attempts: 2 })],
      ][asked.length - 1]
      return stream(response, told ?? [], asked.length)
    })
    const child = start(['events', '--follow', '--json'], { home: server.home })
    const ended = resultOf(child)
    const streamed = async (count: number) => {
      await server.called(() => opened.length >= count)
      return opened[count - 1]
    }
    ;(await streamed(1))?.end()
    const running = untilSaid(child, 'stdout', /running/)
    const second = await streamed(2)
    await running
    const all = untilSaid(child, 'stdout', /evt_old/)
    second?.end()
    await all
    child.kill('SIGINT')
    const { stdout } = await ended
    await server.close()
    assert.deepEqual(asked, [undefined, '0-0', '2-1'])
    assert.deepEqual(
      stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as EventRecord)
        .map(({ id, state, attempts }) => `${id} ${state} ${attempts}`),
      ['evt_1 running 1', 'evt_1 done 1', 'evt_2 done 1', 'evt_old done 2'],
    )
  })

  it('draws on a terminal what is not finished, until it is', async function () {
    if (!hasTerminal()) return this.skip()
    let send: (event: EventRecord) => void = () => undefined
    const server = await startContractServer(({ path }, response) => {
      if (path === '/webhooks') return [200, { webhooks: [{ path: '/a', agent: 'echo' }] }]
      if (path !== '/events/stream')
        return [200, { events: [record('evt_1', { state: 'running' })] }]
      send = (event) => stream(response, [event])
      return stream(response, [])
    })
    const child = startOnTerminal('events --follow', { home: server.home })
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /● running.*0:0\d|● running[^\n]*\n.*following/s)
    const done = untilSaid(child, 'stdout', /\u001b\[\d+A\r\u001b\[J1 [^\n]*✓ done/)
    send(record('evt_1', { resultPreview: 'fine' }))
    await done
    child.stdin?.write('\u0003')
    const { code, stdout } = await ended
    await server.close()
    assert.equal(code, 130)
    assert.match(stdout, /ID +TIME +STATE/)
  })

  it('keeps escape sequences of foreign text away from the screen', async () => {
    const evil = '\u001b[2J\u001b]0;owned\u0007\u009b31mred\u202e\u0008'
    const server = await startContractServer(({ path }, response) => {
      if (path.startsWith('/events/stream'))
        return stream(response, [record('evt_1', { resultPreview: evil })])
      if (path.startsWith('/events/'))
        return [200, { ...record('evt_1', { detail: evil }), prompt: evil, result: evil }]
      return [
        200,
        { events: [record('evt_1', { state: 'failed', detail: evil, webhook: `/${evil}` })] },
      ]
    })
    const { home } = server
    const shown = [
      await run(['events'], { home }),
      await run(['events', 'show', 'evt_1'], { home }),
    ]
    const child = start(['events', '-f'], { home })
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /✓ done/)
    child.kill('SIGINT')
    shown.push(await ended)
    await server.close()
    for (const { stdout, stderr } of shown) {
      assert.match(stdout, /^(1 |id +evt_1$)/m)
      assert.doesNotMatch(`${stdout}${stderr}`, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    }
  })

  it('shows no target as waiting of an event that has failed', async () => {
    const targets = [{ target: 'log', state: 'waiting', attempts: 0 }] as const
    const failed = record('evt_1', { state: 'failed', stage: 'agent', targets: [...targets] })
    const server = await startContractServer(() => [200, failed])
    const { stdout } = await run(['events', 'show', 'evt_1'], { home: server.home })
    await server.close()
    assert.match(stdout, /^target +log: not reached$/m)
  })

  it('gives an output of any size whole to a pipe', async () => {
    const server = await bigServer()
    const { code, stdout } = await run(['events', 'show', 'evt_1', '--json'], { home: server.home })
    await server.close()
    assert.equal(code, 0)
    assert.equal((JSON.parse(stdout) as { result: string }).result.length, 3_000_000)
  })

  it('writes no colour into a pipe', async () => {
    const server = await startContractServer(() => [200, { events: [record('evt_1')] }])
    for (const env of [{}, { NO_COLOR: '1' }, { NO_COLOR: '' }])
      assert.doesNotMatch((await run(['events'], { home: server.home, env })).stdout, /\u001b/)
    await server.close()
  })

  it('colours on a terminal, unless NO_COLOR or --no-color says otherwise', async function () {
    if (!hasTerminal()) return this.skip()
    const server = await startContractServer(() => [200, { events: [record('evt_1')] }])
    const onTerminal = async (more: string, env: Record<string, string> = {}) => {
      const child = startOnTerminal(`events ${more}`, { home: server.home, env })
      return (await resultOf(child)).stdout
    }
    const outputs = await Promise.all([
      onTerminal(''),
      onTerminal('--no-color'),
      onTerminal('', { NO_COLOR: '1' }),
      onTerminal('', { NO_COLOR: '' }),
    ])
    await server.close()
    assert.deepEqual(
      outputs.map((text) => text.includes('\u001b[32m')),
      [true, false, false, true],
    )
  })
})

const bigServer = async (): Promise<ContractServer> =>
  startContractServer(() => [200, { ...record('evt_1'), result: 'x'.repeat(3_000_000) }])

/** `era` is the first part of the ids. */
const stream = (
  response: ServerResponse,
  records: readonly EventRecord[],
  era?: number,
): undefined => {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(': hello\n\n')
  for (const [index, event] of records.entries())
    response.write(
      `id: ${era === undefined ? '' : `${era}-`}${index}\nevent: event\ndata: ${JSON.stringify(event)}\n\n`,
    )
  return undefined
}
