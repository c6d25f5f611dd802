import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import type { DaemonFile, EventDetail } from '../../../shared/api/api.ts'
import { type Client, connect } from '../../../shared/client/client.ts'
import type { Home } from '../../../shared/home/home.ts'
import { type RunningDaemon, startDaemon } from './daemon.ts'
import { send } from '../servers/http.ts'
import { type HeldAgent, startHeldAgent, stopHome } from './restart.ts'

/** A webhook at `/a` that answers with the `n` of its payload. */
export const echoWebhook =
  'webhooks:\n  - { path: /a, agent: echo, prompt_template: "{{event.n}}" }\n'

/** Delivers to `/a`, which accepts it. */
export const deliver = async (
  url: string,
  body: object = {},
): Promise<{ readonly id: string; readonly status: string }> => {
  const headers = { 'content-type': 'application/json' }
  const reply = await send(`${url}/a`, { headers, body: JSON.stringify(body) })
  assert.equal(reply.status, 202, reply.text)
  return reply.json() as { id: string; status: string }
}

/** What `run/daemon.json` says. */
export const daemonFile = async (home: Home): Promise<DaemonFile> =>
  JSON.parse(await readFile(home.daemonJson, 'utf8')) as DaemonFile

/** The daemon that is in service by now, for what a test of a started one uses. */
export const inService = async (old: RunningDaemon): Promise<RunningDaemon> => ({
  ...old,
  client: await connect(old.home),
})

/** An event with its prompt and result. */
export const eventOf = async (client: Client, id: string): Promise<EventDetail> =>
  client.get<EventDetail>(`/events/${id}`)

/**
 * Daemons to be restarted by the tests of a `describe`, in which it is called: not on Windows. Each test's
 * end stops whichever is in service in their homes.
 */
export const restartedDaemons = () => {
  const agents: HeldAgent[] = []
  const homes: Home[] = []
  before(function () {
    if (process.platform === 'win32') this.skip()
  })
  afterEach(async () => {
    for (const agent of agents.splice(0)) agent.close()
    for (const home of homes.splice(0)) await stopHome(home).catch(() => undefined)
  })
  const start = async (...options: Parameters<typeof startDaemon>): Promise<RunningDaemon> => {
    const daemon = await startDaemon(...options)
    homes.push(daemon.home)
    return daemon
  }
  const heldAgent = async (): Promise<HeldAgent> => {
    const agent = await startHeldAgent()
    agents.push(agent)
    return agent
  }
  /** One whose agent answers when the test says so; `more` goes on with the entry of its webhook. */
  const startWithHeldAgent = async (more = '', files: Parameters<typeof startDaemon>[0] = {}) => {
    const agent = await heldAgent()
    const daemon = await start({
      ...files,
      webhooks: `webhooks:\n  - { path: /a, agent: held, prompt_template: "{{event.n}}", dedupe: body${more} }\n`,
      agents: `agents:\n  held: { kind: http, url: "${agent.url}" }\n`,
    })
    return { agent, daemon }
  }
  return { start, heldAgent, startWithHeldAgent }
}
