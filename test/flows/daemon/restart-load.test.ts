import assert from 'node:assert/strict'
import { Agent, request as httpRequest } from 'node:http'
import type { EventRecord } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import { startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { restart, stopHome, untilDead, untilExit } from '../../support/daemon/restart.ts'
import { startRotatingProvider, storeLogin } from '../../support/providers/rotating-provider.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { temporaryHome } from '../../support/temporary.ts'

const secret = 'load-secret'
const perSecond = 200

type Reply = { readonly status: number; readonly text: string }

/** One request; a connection that is refused or broken is thrown. */
const ask = async (
  url: string,
  method: string,
  headers: Readonly<Record<string, string>>,
  agent: Agent | false,
  body?: string,
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const request = httpRequest(url, { method, headers, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
      response.once('error', reject)
    })
    request.once('error', reject)
    request.end(body)
  })

describe('a daemon that is restarted under load', function () {
  this.timeout(120_000)
  before(function () {
    if (process.platform === 'win32') this.skip()
  })

  it('refuses no request, loses no accepted event, and refreshes tokens in one process only', async () => {
    const provider = await startRotatingProvider(3)
    const home = await temporaryHome({
      webhooks: `webhooks:\n  - { path: /a, agent: echo, prompt_template: "{{event.n}}", secret_env: HOOK_SECRET }\n`,
      agents: 'agents:\n  echo: { kind: echo, concurrency: 4 }\n',
      gateway: `oauth: { callback_port: 0 }\nevents: { keep: 20000 }\nproviders:\n  acme: ${provider.entry}\n`,
      env: `HOOK_SECRET=${secret}\n`,
    })
    await storeLogin(home)
    const first = await startDaemon({ home })
    const { url, apiToken } = first
    const kept = new Agent({ keepAlive: true, maxSockets: 8 })
    const bearer = { authorization: `Bearer ${apiToken}` }
    const accepted: string[] = []
    const wrong: string[] = []
    const pending = new Set<Promise<void>>()
    let count = 0

    const post = async (agent: Agent | false) => {
      const body = JSON.stringify({ n: count })
      const headers = { ...githubHeaders(body, secret), 'content-length': String(body.length) }
      const { status, text } = await ask(`${url}/a`, 'POST', headers, agent, body)
      if (status === 202) accepted.push((JSON.parse(text) as { id: string }).id)
      else wrong.push(`webhook ${status} ${text}`)
    }
    const read = async (agent: Agent | false) => {
      const path = `${url}/oauth/tokens/acme/access`
      const { status, text } = await ask(path, 'GET', bearer, agent)
      const token = status === 200 ? (JSON.parse(text) as { accessToken: string }).accessToken : ''
      if (!provider.isGood(token)) wrong.push(`token ${status} ${text}`)
    }
    const reached = new Map<number, () => void>()
    const one = (): void => {
      count += 1
      reached.get(count)?.()
      const act = [post, post, read, post][count % 4] ?? post
      const work: Promise<void> = act(count % 2 === 0 ? kept : false)
        .catch((error: unknown) => void wrong.push(`${act.name} ${String(error)}`))
        .finally(() => pending.delete(work))
      pending.add(work)
    }
    // By the clock, so that a machine that is busy makes them up.
    const startedAt = performance.now()
    const timer = setInterval(() => {
      while (count < ((performance.now() - startedAt) / 1000) * perSecond) one()
    }, 5)

    const more = async (requests: number) =>
      new Promise<void>((resolve) => reached.set(count + requests, resolve))
    const pids = [first.process.pid]
    for (let round = 1; round <= 3; round += 1) {
      await more(perSecond)
      const client = await connect(home)
      pids.push((await restart(client)).pid)
      client.close()
    }
    await more(perSecond)
    clearInterval(timer)
    await Promise.all(pending)
    kept.destroy()
    first.client.close()

    assert.deepEqual(wrong, [])
    assert.equal(new Set(pids).size, 4)
    assert.equal(await untilExit(first), '0')
    // Each of the older ones ends when it has told the newest how its last event has ended.
    for (const pid of pids.slice(1, -1)) await untilDead(Number(pid))
    const client = await connect(home)
    const { events } = await client.get<{ events: EventRecord[] }>('/events?limit=99999')
    const states = new Map(events.map(({ id, state }) => [id, state]))
    for (const id of accepted)
      if (states.has(id) && states.get(id) !== 'done')
        states.set(id, (await untilFinished({ client }, id)).state)
    client.close()
    assert.ok(accepted.length > 300)
    assert.deepEqual(
      accepted.filter((id) => states.get(id) !== 'done'),
      [],
    )
    assert.equal(new Set(accepted).size, accepted.length)
    assert.ok(provider.refreshes() > 1)
    assert.equal(provider.clashes(), 0)
    await stopHome(home)
    provider.close()
  })
})
