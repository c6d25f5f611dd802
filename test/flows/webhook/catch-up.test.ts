import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord, Status } from '../../../shared/api/api.ts'
import { type MissedHook, missedSchema } from '../../../shared/api/hooks.ts'
import { showMissed } from '../../../tray/actions/open.ts'
import type { Note } from '../../../tray/notifications/note.ts'
import { type HomeFiles, temporaryHome } from '../../support/temporary.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { type HookServer, startHookServer } from '../../support/servers/hook-api.ts'
import { githubBody, githubHeaders } from '../../support/servers/sign.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { pressOnPage } from '../../support/daemon/page-by-hand.ts'
import { run } from '../../cli/support/cli.ts'

const path = '/webhook/github'
const secret = 'a-secret-of-the-hook'

describe('deliveries that did not arrive', () => {
  let github: HookServer
  let agent: TargetServer
  let hook: ReturnType<HookServer['addHook']>
  let files: HomeFiles
  let daemon: RunningDaemon | undefined

  beforeEach(async () => {
    github = await startHookServer()
    agent = await startTargetServer(json(200, { answer: 'fine' }))
    hook = github.addHook('acme/door', `https://gateway.example${path}`)
    files = {
      gateway: `targets: { github: { token_env: GH, api_url: "${github.apiUrl}" } }\n`,
      agents: `agents: { model: { kind: http, concurrency: 1, url: "${agent.origin}/" } }\n`,
      webhooks: webhooksWith('ask'),
      env: `GH=gho_1\nSECRET=${secret}\n`,
    }
  })
  afterEach(async () => {
    await daemon?.stop()
    daemon = undefined
    github.close()
    agent.close()
  })

  const webhooksWith = (catchUp: string) => `webhooks:
  - path: ${path}
    agent: model
    prompt_template: "{{event.number}}"
    signature_scheme: github
    secret_env: SECRET
    on: pull_request
    filter: { action: opened }
    source: { provider: github, repository: acme/door, hook_id: 1000, catch_up: ${catchUp}, at_most: 2 }
`
  const start = async (home?: RunningDaemon['home']): Promise<RunningDaemon> => {
    const started = await startDaemon({ home: home ?? (await temporaryHome(files)) })
    daemon = started
    // The first reading sets the cursor.
    await read(started)
    return started
  }
  const read = async ({ client }: RunningDaemon): Promise<MissedHook> => {
    const { hooks } = missedSchema.parse(await client.get('/events/missed?fresh=true'))
    assert.ok(hooks[0])
    return hooks[0]
  }
  const miss = (number: number, minutesAgo = 0, action = 'opened', code = 0) =>
    github.miss(hook, { payload: { action, number }, minutesAgo, code })
  const prompts = () => agent.requests.map(({ fields }) => fields['prompt'])
  const events = async ({ client }: RunningDaemon) =>
    (await client.get<{ events: EventRecord[] }>(`/events?webhook=${path}`)).events
  const untilAllDone = async (running: RunningDaemon) => {
    for (const { id } of await events(running)) await untilFinished(running, id)
  }
  const cli = async ({ home }: RunningDaemon, ...args: string[]) => {
    const result = await run(['events', 'missed', ...args], { home })
    assert.ok(!(result.stdout + result.stderr).includes('gho_1'))
    assert.equal(result.code, 0, result.stderr)
    return result
  }
  const push = async ({ url }: RunningDaemon, number: number, guid: string) => {
    const body = githubBody('pull_request', { action: 'opened', number })
    const headers = githubHeaders(body, secret, { 'x-github-delivery': guid })
    return fetch(`${url}${path}`, { method: 'POST', headers, body })
  }

  it('sets the cursor at the first reading, and asks for what is missed after that', async () => {
    miss(1, 30)
    const first = await start()
    assert.deepEqual((await read(first)).waiting, [])
    await first.stop()

    const guid = miss(2)
    miss(3, 0, 'closed')
    github.miss(hook, { event: 'push', payload: { number: 4 } })
    miss(5)
    const requests = github.requests.length
    const second = await start(first.home)
    const { waiting } = await read(second)
    assert.deepEqual(
      waiting.map(({ event, answer }) => [event, answer]),
      [
        ['pull_request.opened', 'failed to connect'],
        ['pull_request.opened', 'failed to connect'],
      ],
    )
    // The list says enough to pass over the others, and nothing runs that nobody asked for.
    const fetched = github.requests.slice(requests).filter(({ path }) => /\/\d+$/.test(path))
    assert.deepEqual([fetched.length, agent.requests.length], [0, 0])
    const { problems } = await second.client.get<Status>('/status')
    const [problem] = problems.filter(({ code }) => code === 'deliveries-missed')
    assert.match(problem?.detail ?? '', /^2 missed deliveries of acme\/door since \d{4}-/)

    const notes: Note[] = []
    await showMissed(second.client, (note) => notes.push(note))
    const line = 'acme/door: pull_request.opened'
    assert.deepEqual(
      notes.map(({ body, buttons }) => [body, buttons?.map(({ label }) => label)]),
      [[`${line}\n${line}`, ['Run', 'Skip']]],
    )
    const shown = await cli(second)
    assert.match(shown.stdout, /acme\/door +pull_request\.opened +failed to connect/)
    const ran = await cli(second, '--run')
    assert.match(ran.stdout, /2 run/)
    await untilAllDone(second)
    assert.deepEqual(prompts(), ['2', '5'])
    const [event] = (await events(second)).filter(({ deliveryId }) => deliveryId === guid)
    assert.deepEqual([event?.state, event?.source, event?.signed], ['done', 'api', false])
    // What the sender sends again is the same delivery.
    assert.equal((await push(second, 2, guid)).status, 202)
    assert.deepEqual((await read(second)).waiting, [])
    assert.equal(agent.requests.length, 2)

    const text = await readFile(join(second.home.run, 'catch-up'), 'utf8')
    assert.match(text, /^(\n|cursor [\w-]{43} \d+ \.\n|(taken|finished) [\w-]{43}\n)+$/)
    if (process.platform !== 'win32')
      assert.equal((await stat(join(second.home.run, 'catch-up'))).mode & 0o777, 0o600)
  })

  it('knows after a stop what came by itself, and forgets what the owner skips', async () => {
    const first = await start()
    const guid = miss(1)
    assert.equal((await push(first, 1, guid)).status, 202)
    await untilAllDone(first)
    miss(2)
    assert.equal((await read(first)).waiting.length, 1)
    const { before, after } = await pressOnPage(first, '/ui/waiting', 'leave')
    assert.match(before, /Not delivered by <bdi>acme\/door<\/bdi>[^]*pull_request\.opened/)
    assert.match(after, /1 left[^]*Nothing waits for you/)
    await first.stop()
    const second = await start(first.home)
    assert.deepEqual((await read(second)).waiting, [])
    assert.deepEqual(prompts(), ['1'])
  })

  it('runs the newest alone, or all up to at_most, and tells what is left', async () => {
    const first = await start()
    await first.stop()
    for (const number of [1, 2, 3]) miss(number)
    await writeFile(join(first.home.config, 'webhooks.yaml'), webhooksWith('newest'))
    const second = await start(first.home)
    await untilAllDone(second)
    assert.deepEqual(prompts(), ['3'])
    assert.deepEqual((await read(second)).waiting, [])
    await second.stop()

    for (const number of [4, 5, 6]) miss(number)
    await writeFile(join(first.home.config, 'webhooks.yaml'), webhooksWith('all'))
    const third = await start(first.home)
    await untilAllDone(third)
    assert.deepEqual(prompts(), ['3', '4', '5'])
    assert.equal((await read(third)).waiting.length, 1)
    const { events: own } = await third.client.get<{ events: EventRecord[] }>('/events')
    assert.ok(
      own.some(({ detail }) => detail?.endsWith('2 run, 1 waiting (doorward events missed)')),
    )
    await third.stop()

    await writeFile(join(first.home.config, 'webhooks.yaml'), webhooksWith('off'))
    daemon = await startDaemon({ home: first.home })
    assert.deepEqual(await daemon.client.get('/events/missed?fresh=true'), { hooks: [] })
  })

  it('loses nothing and finishes nothing twice when it is killed in the middle', async () => {
    const first = await start()
    await first.stop()
    for (const number of [1, 2]) miss(number)
    const second = await start(first.home)
    // The second is never answered.
    const isAsked = new Promise<void>((resolve) => {
      agent.next(json(200, {}), () => resolve())
    })
    const followed = await followEvents(second)
    assert.match((await cli(second, '--run')).stdout, /2 run/)
    await followed.next(({ state }) => state === 'done')
    followed.close()
    await isAsked
    const exit = once(second.process, 'exit')
    second.process.kill('SIGKILL')
    await exit
    assert.deepEqual(prompts(), ['1', '2'])
    const third = await start(first.home)
    assert.equal((await read(third)).waiting.length, 1)
    await cli(third, '--run')
    await untilAllDone(third)
    assert.deepEqual(prompts(), ['1', '2', '2'])
    await third.stop()
    const fourth = await start(first.home)
    assert.deepEqual((await read(fourth)).waiting, [])
  })

  it('runs again what it had accepted when it was killed, and not what another machine accepted', async () => {
    const first = await start()
    const isAsked = new Promise<void>((resolve) => {
      agent.next(() => resolve())
    })
    const guid = miss(1, 0, 'opened', 202)
    assert.equal((await push(first, 1, guid)).status, 202)
    await isAsked
    const exit = once(first.process, 'exit')
    first.process.kill('SIGKILL')
    await exit
    miss(2, 0, 'opened', 202)
    miss(3)
    const second = await start(first.home)
    assert.equal((await read(second)).waiting.length, 2)
    await cli(second, '--run')
    await untilAllDone(second)
    assert.deepEqual(prompts(), ['1', '1', '3'])
  })

  it('passes over a delivery whose details are gone, and says why a list cannot be read', async () => {
    const first = await start()
    miss(1)
    hook.sent.clear()
    assert.match((await cli(first, '--run')).stdout, /1 refused or no longer at the sender/)
    assert.deepEqual((await read(first)).waiting, [])
    github.next(json(500, {}))
    assert.equal((await read(first)).problem, 'GitHub answered 500')
    assert.equal((await read(first)).problem, undefined)
    github.scopes = ['gist']
    assert.match((await read(first)).problem ?? '', /lacks admin:repo_hook/)
  })
})
