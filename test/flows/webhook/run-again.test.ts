import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type EventDetail, type EventRecord, eventSchema } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { githubBody, githubHeaders } from '../../support/servers/sign.ts'
import { type TargetServer, startTargetServer } from '../../support/servers/target-server.ts'

const secret = 'a secret of the flow test'

describe('an event that runs once more', () => {
  let daemon: RunningDaemon
  let api: TargetServer
  const definition = (more: string) => `
webhooks:
  - { path: /hook, signature_scheme: github, secret_env: HOOK_SECRET, ${more} }
`
  const first = 'agent: echo, prompt_template: "first {{event.title}}"'

  before(async () => {
    api = await startTargetServer()
    daemon = await startDaemon({
      env: `HOOK_SECRET=${secret}\nOPS_URL=${api.origin}/ops\n`,
      gateway: `
oauth: { callback_port: 0 }
targets: { discord: { ops: { url_env: OPS_URL } } }
`,
      agents: `
agents:
  echo: { kind: echo }
  other: { kind: echo }
  fails: { kind: command, command: ["${process.execPath}", -e, "process.exit(3)"] }
`,
      webhooks: definition(first),
    })
  })
  after(async () => {
    api.close()
    assert.equal(await daemon.stop(), 0)
  })

  const configure = async (more: string) => {
    await writeFile(join(daemon.home.config, 'webhooks.yaml'), definition(more))
    await daemon.client.post('/daemon/reload')
  }
  const post = async (payload: object, delivery: string) => {
    const body = githubBody('pull_request', payload)
    const headers = githubHeaders(body, secret, { 'x-github-delivery': delivery })
    return (await send(`${daemon.url}/hook`, { headers, body })).json()
  }
  const done = async (payload: object, delivery: string): Promise<EventDetail> =>
    untilFinished(daemon, String((await post(payload, delivery))['id']))
  const again = async (id: string) =>
    daemon.client.post<EventRecord>(`/events/${id}/retry?again=true`)
  const refused = async (id: string, why: RegExp) =>
    assert.rejects(again(id), { code: 'event-not-retryable', message: why })

  it('has prompt, agent and targets as they are now, and the payload of then', async () => {
    await configure(first)
    const { id, result } = await done({ title: 'canary', action: 'opened' }, 'd-1')
    assert.equal(result, 'first canary')
    await configure(
      'agent: other, prompt_template: "second {{event.action}} {{event.title}} {{headers.x-github-event}} {{delivery.id}}", deliver_to: discord:ops',
    )
    assert.equal((await post({ title: 'canary', action: 'opened' }, 'd-1'))['status'], 'duplicate')
    const plain = await run(['events', 'retry', id], { home: daemon.home })
    assert.match(plain.stderr, new RegExp(`it is done: .*\\n.*doorward events retry ${id} --again`))
    const queued = await again(id)
    assert.deepEqual(eventSchema.parse(queued), queued)
    const event = await untilFinished(daemon, id)
    assert.deepEqual(
      [event.state, event.agent, event.attempts, event.prompt, event.result],
      ['done', 'other', 2, event.result, 'second opened canary pull_request d-1'],
    )
    assert.deepEqual(event.targets, [{ target: 'discord:ops', state: 'done', attempts: 1 }])
    assert.equal(api.requests.at(-1)?.fields['content'], event.result)
    // It is still the same delivery.
    assert.equal((await post({ title: 'canary', action: 'opened' }, 'd-1'))['status'], 'duplicate')
  })

  it('that fails can be retried with its new prompt, and has no answer of before', async () => {
    await configure(`${first}, deliver_to: discord:ops`)
    const { id } = await done({ title: 'x' }, 'd-3')
    await configure('agent: fails, prompt_template: "new {{event.title}}", deliver_to: discord:ops')
    const before = api.requests.length
    await again(id)
    const failed = await untilFinished(daemon, id)
    assert.deepEqual(
      [failed.state, failed.stage, failed.prompt, failed.result, failed.resultPreview],
      ['failed', 'agent', 'new x', undefined, undefined],
    )
    await daemon.client.post(`/events/${id}/retry`)
    assert.equal((await untilFinished(daemon, id)).stage, 'agent')
    assert.equal(api.requests.length, before)
    // Nothing of it is done, so its sender may deliver it again; then this one may not run.
    await configure(first)
    const other = await done({ title: 'x' }, 'd-3')
    assert.equal(other.state, 'done')
    await refused(id, new RegExp(`delivered it again, as ${other.id}`))
  })

  it('is refused where the definition of now does not take it', async () => {
    await configure(first)
    const { id } = await done({ title: 'x', action: 'opened' }, 'd-4')
    await configure(`${first}, filter: { action: closed }`)
    await refused(id, /the filter on action does not match now/)
    const filtered = await done({ title: 'x', action: 'opened' }, 'd-5')
    await refused(filtered.id, /the filter did not match/)
    await configure(`${first}, enabled: false`)
    await refused(id, /there is no webhook \/hook any more, or it is switched off/)
    await configure(first)
    await again(id)
    assert.equal((await untilFinished(daemon, id)).state, 'done')
  })

  it('is refused once its payload is no longer in memory', async () => {
    await configure(first)
    const { id } = await done({ title: 'x' }, 'd-6')
    const large = { title: 'y', padding: 'p'.repeat(2.5 * 1024 * 1024) }
    const last = [await done(large, 'd-7'), await done(large, 'd-8')].at(-1)
    await refused(id, /its payload is no longer in memory/)
    await again(last?.id ?? '')
    assert.equal((await untilFinished(daemon, last?.id ?? '')).result, 'first y')
  })

  it('is refused for what is no event of a webhook, and for a question that is not understood', async () => {
    await assert.rejects(again('evt_nothing'), { code: 'event-not-found' })
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?state=done')
    const own = events.find(({ kind }) => kind === 'daemon')
    await refused(own?.id ?? '', /no event of a webhook/)
    await assert.rejects(daemon.client.post(`/events/${own?.id}/retry?again=yes`), {
      code: 'request-invalid',
    })
  })
})
