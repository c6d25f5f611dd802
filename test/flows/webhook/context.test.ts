import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { type AgentPrompt, agentPromptSchema, type EventDetail } from '../../../shared/api/api.ts'
import type { Explanation } from '../../../shared/api/explain.ts'
import type { Home } from '../../../shared/home/home.ts'
import { type RunningDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { restart } from '../../support/daemon/restart.ts'
import {
  deliver,
  eventOf,
  inService,
  restartedDaemons,
} from '../../support/daemon/restarted-daemons.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { send } from '../../support/servers/http.ts'
import { run } from '../../cli/support/cli.ts'
import { temporaryHome } from '../../support/temporary.ts'

describe('the context of an event', () => {
  const { start, heldAgent } = restartedDaemons()
  let server: GitServer
  let base: string
  beforeEach(async () => {
    server = await startGitServer(undefined, 'acme/app')
    base = await server.git('rev-parse', 'HEAD')
    await server.push({ 'src/a.ts': 'one {{context.files}}\n' })
  })
  afterEach(() => server.close())

  const homeWith = async (url: string, template: string, more = ''): Promise<Home> =>
    temporaryHome({
      agents: `agents:\n  held: { kind: http, url: "${url}" }\n`,
      webhooks: `
webhooks:
  - path: /a
    agent: held
    workspace: { repo: '${server.url}', ref: main, base: '{{event.base}}' }
    context: [diff, files]
    prompt_template: '${template}'
    ${more}
`,
    })
  const shown = ({ prompt = '' }: EventDetail): string =>
    prompt.replaceAll(/(\{\{context\.\w+) [0-9a-f]{16}\}\}/g, '$1 ID}}')

  it('is in the prompt of its agent, and a place in that of the event', async () => {
    const agent = await heldAgent()
    const template = 'See {{event.title}}: {{context.diff}}Of {{ context.files }}'
    const daemon = await start({ home: await homeWith(agent.url, template) })
    const { id } = await deliver(daemon.url, { base, title: '{{context.diff}}' })
    const asked = await agent.next()
    assert.match(asked.prompt, /^See \{\{context\.diff\}\}: diff --git a\/src\/a\.ts/)
    assert.match(asked.prompt, /\n\+one \{\{context\.files\}\}\nOf added src\/a\.ts \(\+1 -0\)\n$/)
    asked.answer('fine')
    const event = await untilFinished(daemon, id)
    assert.equal(event.state, 'done', event.detail)
    const sizes = event.context?.map(({ name, bytes, leftOut }) => [name, bytes > 20, leftOut])
    assert.deepEqual(sizes, [
      ['diff', true, null],
      ['files', true, null],
    ])
    assert.equal(event.promptSize, Buffer.byteLength(asked.prompt))
    assert.equal(shown(event), 'See {{context.diff}}: {{context.diff ID}}Of {{context.files ID}}')
  })

  it('is fenced in a prompt for a model, also of a template with tags', async () => {
    const agent = await heldAgent()
    const template = '{% if event.base %}{{- context.diff -}} {% endif %}{{ event.base | upcase }}'
    const home = await homeWith(agent.url, template, 'event_text: fenced')
    const daemon = await start({ home })
    await deliver(daemon.url, { base })
    const { prompt, answer } = await agent.next()
    const [, id = ''] = /^Text between <<<EVENT_TEXT (\w{16})>>>/.exec(prompt) ?? []
    assert.ok(prompt.includes(`\n\n<<<EVENT_TEXT ${id}>>>diff --git a/src/a.ts`), prompt)
    assert.ok(
      prompt.includes(
        `files}}\n<<<END_EVENT_TEXT ${id}>>><<<EVENT_TEXT ${id}>>>${base.toUpperCase()}`,
      ),
      prompt,
    )
    answer('fine')
  })

  it('comes again with a retry, and is that of the event after a restart', async () => {
    const agent = await heldAgent()
    const home = await homeWith(agent.url, '{{event.n}} {{context.files}}')
    const old = await start({ home })
    const first = await deliver(old.url, { n: 1, base })
    const one = await agent.next()
    assert.equal(one.prompt, '1 added src/a.ts (+1 -0)\n')
    const second = await deliver(old.url, { n: 2, base })
    await restart(old.client)
    const now = await inService(old)
    one.answer('one')
    const two = await agent.next()
    assert.equal(two.prompt, '2 added src/a.ts (+1 -0)\n')
    await now.client.post(`/events/${second.id}/cancel`)
    assert.equal((await untilFinished(now, second.id)).state, 'failed')
    await now.client.post(`/events/${second.id}/retry`)
    const again = await agent.next()
    assert.equal(again.prompt, '2 added src/a.ts (+1 -0)\n')
    again.answer('two')
    assert.equal((await untilFinished(now, second.id)).state, 'done')
    assert.equal((await eventOf(now.client, first.id)).state, 'done')
  })

  it('is in the prompt of --prompt, which nothing else shows, also after a restart', async () => {
    const agent = await heldAgent()
    const home = await homeWith(agent.url, '{{event.n}} {{context.diff}}')
    const old = await start({ home })
    const { id } = await deliver(old.url, { n: 1, base })
    const { prompt, answer } = await agent.next()
    assert.match(prompt, /^1 diff --git/)
    const wholeOf = async ({ client }: RunningDaemon) =>
      client.get<AgentPrompt>(`/events/${id}/prompt`)
    assert.deepEqual(agentPromptSchema.parse(await wholeOf(old)), { prompt })
    await restart(old.client)
    const now = await inService(old)
    assert.deepEqual(await wholeOf(now), { prompt })
    answer('fine')
    const event = await untilFinished(now, id)
    assert.deepEqual([event.state, event.promptSize], ['done', prompt.length])
    assert.deepEqual(await wholeOf(now), { prompt })
    const args = ['events', 'show', id, '--home', home.root, '--prompt']
    assert.equal((await run(args)).stdout, `${prompt}\n`)
    assert.deepEqual(JSON.parse((await run([...args, '--json'])).stdout), { prompt })
    const shownByOthers = await Promise.all([
      now.client.get(`/events/${id}`),
      now.client.get('/status'),
      readFile(home.log, 'utf8'),
    ])
    assert.ok(!JSON.stringify(shownByOthers).includes('diff --git'))
    const url = `${now.client.daemon.url}/events/${id}/prompt`
    const stranger = await send(url, { method: 'GET' })
    assert.deepEqual([stranger.status, stranger.text.includes('diff')], [401, false])
    const { id: later } = await deliver(now.client.daemon.url, { n: 2, base: 'nothing' })
    assert.equal((await untilFinished(now, later)).state, 'failed')
    const none = await run(['events', 'show', later, '--home', home.root, '--prompt'])
    assert.deepEqual([none.code, none.stdout], [1, ''])
    assert.match(none.stderr, /no agent was asked/)
  })

  it('is a placeholder in an explanation', async () => {
    const home = await homeWith(
      'http://127.0.0.1:9/',
      'See {{event.n}} {{context.diff}} {{context.files}}',
    )
    const { client }: RunningDaemon = await start({ home })
    const { prompt, substituted } = await client.post<Explanation>('/webhooks/explain', {
      path: '/a',
      payload: { n: 1, base },
    })
    assert.equal(prompt, 'See 1 {{context.diff}} {{context.files}}')
    assert.deepEqual(substituted, [{ path: 'event.n', start: 4, end: 5 }])
  })
})
