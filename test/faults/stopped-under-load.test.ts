import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { Agent, request as httpRequest } from 'node:http'
import type { EventRecord } from '../../shared/api/api.ts'
import { systemCode } from '../../shared/errors.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { faultSeed, isLong, randomMoments } from '../support/daemon/fault-run.ts'
import { githubHeaders } from '../support/servers/sign.ts'

/*
 * Senders post as fast as they can, on connections of their own and on kept ones, when the daemon is told to
 * stop. What it has answered 202 it has to account for; what it does not take, it must not answer 202.
 */

const rounds = isLong ? 60 : 2
const secret = 'a-secret-of-the-sender'

type Reply = { readonly status: number; readonly text: string }
type Sent = Reply | { readonly broken: string }

const post = async (url: string, body: string, agent: Agent | false): Promise<Sent> =>
  new Promise((resolve) => {
    const headers = { ...githubHeaders(body, secret), 'content-length': String(body.length) }
    const request = httpRequest(url, { method: 'POST', headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.once('error', (error) => resolve({ broken: systemCode(error) ?? error.message }))
    })
    request.once('error', (error) => resolve({ broken: systemCode(error) ?? error.message }))
    request.end(body)
  })

/** The last state of each event, by all that the stream says until it ends. */
const statesFrom = async (daemon: RunningDaemon) => {
  const stream = await daemon.client.open('/events/stream')
  const states = new Map<string, string>()
  const ended = (async () => {
    let text = ''
    for await (const chunk of stream.setEncoding('utf8') as AsyncIterable<string>) {
      text += chunk
      const lines = text.split('\n')
      text = lines.pop() ?? ''
      for (const line of lines.filter((line) => line.startsWith('data:'))) {
        const record = JSON.parse(line.slice(5)) as EventRecord | undefined
        if (record?.id) states.set(record.id, record.state)
      }
    }
  })()
  return { states, ended }
}

/** How each event ended by the log. */
const loggedEnds = async (path: string): Promise<Map<string, string>> => {
  const lines = (await readFile(path, 'utf8')).trim().split('\n')
  const ends = new Map<string, string>()
  for (const line of lines) {
    const { event, state, msg } = JSON.parse(line) as Record<string, string | undefined>
    if (event !== undefined) ends.set(event, msg === 'event dropped' ? 'dropped' : (state ?? ''))
  }
  return ends
}

describe('a daemon that is stopped under load', function () {
  this.timeout(isLong ? 30 * 60_000 : 120_000)
  const { below, wait } = randomMoments()

  const stopUnderLoad = async (
    drainTimeout: string,
    stop: (daemon: RunningDaemon) => Promise<void>,
  ): Promise<Map<string, number>> => {
    const daemon = await startDaemon({
      gateway: `oauth: { callback_port: 0 }
queue: { drain_timeout: ${drainTimeout}, max_events: 5000 }
events: { keep: 50000 }
`,
      agents: `agents:
  echo: { kind: echo, concurrency: 2 }
  quick: { kind: command, command: [sh, -c, 'sleep 0.05; cat'], concurrency: 2 }
`,
      webhooks: `webhooks:
  - { path: /echo, agent: echo, prompt_template: '{{event.n}}', secret_env: SENDER }
  - { path: /quick, agent: quick, prompt_template: '{{event.n}}', secret_env: SENDER }
`,
      env: `SENDER=${secret}\n`,
    })
    const { states, ended } = await statesFrom(daemon)
    const accepted: string[] = []
    const refused = new Map<string, number>()
    const kept = new Agent({ keepAlive: true, maxSockets: 4 })
    const gone = new AbortController()
    const sender = async (agent: Agent | false): Promise<void> => {
      while (!gone.signal.aborted) {
        const path = below(10) === 0 ? '/quick' : '/echo'
        const sent = await post(`${daemon.url}${path}`, JSON.stringify({ n: below(1000) }), agent)
        if ('broken' in sent) {
          refused.set(sent.broken, (refused.get(sent.broken) ?? 0) + 1)
          // A connection that is refused costs nothing: else this would be all that the machine does.
          await wait(5)
        } else if (sent.status === 202)
          accepted.push(String((JSON.parse(sent.text) as { id: unknown }).id))
        else {
          const { code } = JSON.parse(sent.text) as { code: string }
          const what = `${sent.status} ${code}`
          refused.set(what, (refused.get(what) ?? 0) + 1)
        }
      }
    }
    const over = once(daemon.process, 'exit')
    const senders = [kept, kept, kept, kept, false, false, false, false].map((agent) =>
      sender(agent as Agent | false),
    )
    while (accepted.length < 50) await wait(20)
    await wait(300)
    await stop(daemon)
    assert.deepEqual(await over, [0, null])
    gone.abort()
    await Promise.all(senders)
    await ended.catch(() => undefined)
    kept.destroy()
    daemon.client.close()

    const logged = await loggedEnds(daemon.home.log)
    const known = ['done', 'dropped', 'failed']
    const ends = new Map<string, number>()
    for (const id of accepted) {
      const end = logged.get(id) ?? 'nothing'
      assert.ok(known.includes(end), `${id} was accepted, and the log says ${end} of it`)
      assert.equal(states.get(id), end, `of ${id} the stream said something else than the log`)
      ends.set(end, (ends.get(end) ?? 0) + 1)
    }
    assert.equal(new Set(accepted).size, accepted.length)
    // Before it stops no connection is refused; afterwards nothing is taken without an answer.
    for (const how of refused.keys())
      assert.match(how, /^(503 (stopping|queue-full)|ECONNREFUSED|ECONNRESET|EPIPE)$/)
    return ends
  }

  it(`finishes every accepted event where there is time, ${rounds} times (seed ${faultSeed})`, async () => {
    for (let round = 0; round < rounds; round += 1) {
      const ends = await stopUnderLoad('60s', async ({ process }) => void process.kill('SIGTERM'))
      assert.deepEqual([...ends.keys()], ['done'])
    }
  })

  it(`logs each event that it does not finish where there is none (seed ${faultSeed})`, async () => {
    let dropped = 0
    for (let round = 0; round < rounds; round += 1) {
      const ends = await stopUnderLoad('100ms', async ({ process }) => void process.kill('SIGTERM'))
      dropped += ends.get('dropped') ?? 0
    }
    assert.ok(dropped > 0)
  })

  it(`does the same when it is stopped twice, or over its API (seed ${faultSeed})`, async () => {
    await stopUnderLoad('60s', async ({ process }) => {
      process.kill('SIGTERM')
      await wait(100)
      process.kill('SIGTERM')
    })
    await stopUnderLoad('200ms', async ({ client }) => void (await client.post('/daemon/shutdown')))
  })
})
