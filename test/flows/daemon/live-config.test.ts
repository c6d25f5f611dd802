import assert from 'node:assert/strict'
import { mkdir, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type EventRecord,
  type Status,
  type WebhookSummary,
  reloadedSchema,
  statusSchema,
} from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type Followed, followEvents } from '../../support/daemon/events.ts'
import { send } from '../../support/servers/http.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { githubHeaders } from '../../support/servers/sign.ts'

const json = { 'content-type': 'application/json' }

describe('the configuration of a running daemon', () => {
  let reports: Reports
  let daemon: RunningDaemon
  let changes: Followed
  const file = (name: string) => join(daemon.home.config, `${name}.yaml`)
  const webhook = (path: string, prompt = 'x', more = '') =>
    `  - { path: ${path}, agent: echo, prompt_template: "${prompt}"${more} }\n`
  const webhooks = (...entries: readonly string[]) => `webhooks:\n${entries.join('')}`
  const isReload = ({ kind, state, detail }: EventRecord) =>
    kind === 'daemon' && state === 'done' && /was reloaded/.test(detail ?? '')
  const reloaded = () => changes.next(isReload)
  const refused = () => changes.next(({ kind, state }) => kind === 'daemon' && state === 'failed')
  const post = (path: string, body = '{}', headers: Record<string, string> = json) =>
    send(`${daemon.url}${path}`, { headers, body })
  const answersAt = async (path: string, status = 202) =>
    assert.equal((await post(path)).status, status, path)
  const status = () => daemon.client.get<Status>('/status')
  /** Replaced as editors do that never write into the file itself. */
  const replace = async (path: string, text: string) => {
    await writeFile(`${path}.new`, text)
    await rename(`${path}.new`, path)
  }

  beforeEach(async () => {
    reports = await startReports()
    daemon = await startDaemon({
      webhooks: webhooks(webhook('/a')),
      gateway: 'server: { body_limit: 1kb }\noauth: { callback_port: 0 }\n',
      agents: `agents:\n  echo: { kind: echo }\n  slow: { kind: command, command: ${reports.command} }\n`,
    })
    changes = await followEvents(daemon)
  })
  afterEach(async () => {
    changes.close()
    reports.close()
    assert.equal(await daemon.stop(), 0)
  })

  it('is taken when a file is written, replaced, or moved away and written anew', async () => {
    await writeFile(file('webhooks'), webhooks(webhook('/b')))
    await reloaded()
    await answersAt('/b')
    await answersAt('/a', 404)
    for (const path of ['/c', '/d']) {
      await replace(file('webhooks'), webhooks(webhook(path)))
      await reloaded()
      await answersAt(path)
    }
    await rename(file('webhooks'), `${file('webhooks')}~`)
    await writeFile(file('webhooks'), webhooks(webhook('/e')))
    await unlink(`${file('webhooks')}~`)
    await reloaded()
    await answersAt('/e')
  })

  it('is taken when the whole folder is replaced, and from the new folder from then on', async () => {
    const { config } = daemon.home
    const made = join(daemon.home.root, 'made')
    await mkdir(made, { mode: 0o700 })
    for (const name of ['gateway', 'agents'])
      await writeFile(join(made, `${name}.yaml`), await readFile(file(name)))
    await writeFile(join(made, 'webhooks.yaml'), webhooks(webhook('/new')))
    await rename(config, `${config}.old`)
    await rename(made, config)
    const first = await changes.next(({ kind }) => kind === 'daemon')
    // Between the two there was no folder at all, which may have been seen.
    if (!isReload(first)) await reloaded()
    await answersAt('/new')
    await rm(`${config}.old`, { recursive: true })
    await replace(file('webhooks'), webhooks(webhook('/newer')))
    await reloaded()
    await answersAt('/newer')
  })

  it('has the secrets of .env as they are now', async () => {
    await writeFile(file('webhooks'), webhooks(webhook('/s', 'x', ', secret_env: LATER')))
    await reloaded()
    await answersAt('/s', 503)
    assert.ok((await status()).problems.some(({ code }) => code === 'secret-unset'))
    await writeFile(daemon.home.env, 'LATER=canary\n')
    await reloaded()
    assert.equal((await post('/s', '{}', githubHeaders('{}', 'canary'))).status, 202)
    assert.deepEqual((await status()).problems, [])
    assert.doesNotMatch(await readFile(daemon.home.log, 'utf8'), /canary/)
  })

  it('is kept when a file is broken, which log, event and status say until it is mended', async () => {
    await writeFile(file('webhooks'), 'webhooks:\n  - path: /b\n    agent: eco\n    canary: 1\n')
    const { code, detail } = await refused()
    assert.equal(code, 'config-invalid')
    assert.match(detail ?? '', /webhooks\.yaml:\d+:\d+ .*\(and \d more\)$/)
    await answersAt('/a')
    const { problems } = statusSchema.parse(await status())
    const broken = problems.filter(({ code }) => code === 'config-invalid')
    const found = broken.map(({ code, detail }) => [code, detail.replace(/.*webhooks\.yaml/, '')])
    assert.deepEqual(
      found.slice(0, 2).map(([, detail]) => detail),
      [
        ':2:5 webhooks[0].prompt_template: missing',
        ':3:5 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)',
      ],
    )
    assert.equal(found.length, 3)
    assert.match(String(found[2]?.[1]), /^:4:5 webhooks\[0\]\.canary: unknown key/)
    const shown = await run(['status'], { home: daemon.home })
    assert.match(shown.stdout, /webhooks\.yaml:3:5 webhooks\[0\]\.agent: unknown agent "eco"/)
    const log = await readFile(daemon.home.log, 'utf8')
    assert.match(log, /webhooks\.yaml:3:5 webhooks\[0\]\.agent/)
    assert.doesNotMatch(log, /unknown agent/)
    await writeFile(file('webhooks'), webhooks(webhook('/b')))
    await reloaded()
    assert.ok(!(await status()).problems.some(({ code }) => code === 'config-invalid'))
    await answersAt('/b')
  })

  it('is not taken from a file that is half written, without a secret or empty, until it stays so', async () => {
    const whole = `webhooks:\n  - path: /s\n    agent: echo\n    prompt_template: x\n    secret_env: S\n`
    await writeFile(file('webhooks'), whole)
    await reloaded()
    await answersAt('/s', 503)
    const cut = whole.replace(/    secret_env.*\n/, '')
    for (const text of [cut, '']) {
      await writeFile(file('webhooks'), text)
      const written = performance.now()
      while (performance.now() - written < 600) await answersAt('/s', 503)
    }
    await writeFile(file('webhooks'), `${whole}${webhook('/t')}`)
    assert.match((await reloaded()).detail ?? '', /2 webhooks/)
    await writeFile(file('webhooks'), cut)
    const written = performance.now()
    await reloaded()
    assert.ok(performance.now() - written > 1500)
    await answersAt('/s')
  })

  it('is taken at once by who asks for it, whatever it lacks', async () => {
    const started = performance.now()
    await writeFile(file('webhooks'), 'webhooks: []\n')
    reloadedSchema.parse(await daemon.client.post('/daemon/reload'))
    await answersAt('/a', 404)
    assert.ok(performance.now() - started < 1500)
  })

  it('is kept when .env is open to others, with the command that mends it', async () => {
    await unlink(daemon.home.env)
    await writeFile(daemon.home.env, 'A=1\n', { mode: 0o644 })
    const { detail } = await refused()
    assert.match(detail ?? '', /open to other users/)
    const [problem] = (await status()).problems
    assert.match(problem?.hint ?? '', /^chmod 600 /)
  })

  it('is the one of its time for an event that is running or waiting', async () => {
    const text = (name: string) =>
      `webhooks:\n  - { path: /slow, agent: slow, prompt_template: "{{event.n}} ${name}", deliver_to: "file:${name}.md" }\n`
    await writeFile(file('webhooks'), text('old'))
    await reloaded()
    const ids = []
    for (const n of ['1', '2'])
      ids.push(String((await post('/slow', JSON.stringify({ n }))).json()['id']))
    const first = await reports.next()
    await writeFile(file('webhooks'), text('new'))
    await writeFile(file('agents'), 'agents:\n  slow: { kind: echo }\n')
    await reloaded()
    ids.push(String((await post('/slow', '{"n":"3"}')).json()['id']))
    first.release()
    const second = await reports.next()
    assert.equal(second.prompt, '2 old')
    second.release()
    const results = []
    for (const id of ids) results.push((await untilFinished(daemon, id)).result)
    assert.deepEqual(results, ['answer to 1 old', 'answer to 2 old', '3 new'])
    assert.match(await readFile(join(daemon.home.root, 'old.md'), 'utf8'), /2 old/)
    assert.match(await readFile(join(daemon.home.root, 'new.md'), 'utf8'), /3 new/)
  })

  it('applies limits and the public address at once, and says what waits for a restart', async () => {
    assert.equal((await post('/a', JSON.stringify('x'.repeat(1500)))).status, 413)
    // Whole at once: an empty gateway.yaml, which is what is there between the two steps of a write, is valid.
    await replace(
      file('gateway'),
      'server: { body_limit: 2kb, port: 1, public_port: 2, public_url: "https://hooks.example" }\nqueue: { max_bytes: 1kb }\n',
    )
    const { detail } = await reloaded()
    assert.match(detail ?? '', /server\.public_port is now 2, which takes effect after a restart/)
    assert.equal((await post('/a', JSON.stringify('x'.repeat(1500)))).status, 503)
    const { problems, publicUrl, webhooks: rows } = await status()
    // DOORWARD_PORT says which port it is, whatever the file says.
    assert.deepEqual(
      problems.map(({ code, hint }) => [code, hint]),
      [
        ['restart-needed', 'doorward daemon restart'],
        [
          'body-limit-too-large',
          'raise queue.max_bytes or lower server.body_limit in gateway.yaml',
        ],
        ['webhook-unsigned', 'add secret_env to its entry in webhooks.yaml'],
      ],
    )
    assert.deepEqual(
      [publicUrl, rows[0]?.url],
      ['https://hooks.example', 'https://hooks.example/webhook/a'],
    )
    const { publicUrl: written } = JSON.parse(await readFile(daemon.home.daemonJson, 'utf8')) as {
      publicUrl?: string
    }
    assert.equal(written, 'https://hooks.example')
  })

  it('has the providers of gateway.yaml as they are now', async () => {
    await replace(
      file('gateway'),
      'providers: { example: { issuer: "https://login.example.com" } }\n',
    )
    await reloaded()
    const { providers } = await status()
    assert.deepEqual(
      providers.map(({ provider }) => provider),
      ['example', 'github', 'google', 'slack'],
    )
  })

  it('is read again on request: 200, or 422 with every problem', async () => {
    await writeFile(file('webhooks'), webhooks(webhook('/b'), webhook('/c')))
    const answer = reloadedSchema.parse(await daemon.client.post('/daemon/reload'))
    assert.deepEqual([answer.webhooks, answer.agents, answer.problems], [2, 2, []])
    await answersAt('/c')
    await writeFile(file('webhooks'), webhooks(webhook('/b'), webhook('/b', '{{nothing}}')))
    const reply = await send(`${daemon.url}/daemon/reload`, {
      headers: { authorization: `Bearer ${daemon.apiToken}` },
    })
    const { code, detail } = reply.json()
    assert.deepEqual([reply.status, code], [422, 'config-invalid'])
    assert.match(String(detail), /webhooks\.yaml:3:7 .*defined twice/)
    assert.match(String(detail), /webhooks\.yaml:3:\d+ webhooks\[1\]\.prompt_template: \{\{nothing/)
    await answersAt('/c')
    const cli = await run(['daemon', 'reload'], { home: daemon.home })
    assert.equal(cli.code, 1)
    assert.match(cli.stderr, /webhooks\.yaml:3:7 .*defined twice/)
    await writeFile(file('webhooks'), webhooks(webhook('/b')))
    const mended = await run(['daemon', 'reload'], { home: daemon.home })
    assert.deepEqual([mended.code, mended.stdout], [0, 'reloaded: 1 webhook, 2 agents\n'])
  })

  it('counts on through a change, and makes no news of a file that is saved as it was', async () => {
    await answersAt('/a')
    await writeFile(file('agents'), await readFile(file('agents')))
    await replace(file('webhooks'), webhooks(webhook('/a', 'other')))
    await reloaded()
    await answersAt('/a')
    const { webhooks: rows } = await daemon.client.get<{ webhooks: WebhookSummary[] }>('/webhooks')
    assert.equal(rows[0]?.counts.accepted, 2)
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
    assert.equal(events.filter(isReload).length, 1)
  })
})
