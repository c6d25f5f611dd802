import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail, EventRecord, WebhookSummary } from '../../../../shared/api/api.ts'
import { packageFolder } from '../../../../shared/version.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../../support/daemon/daemon.ts'
import { temporaryFolder } from '../../../support/temporary.ts'
import { hasTerminal, resultOf, run, startOnTerminal, untilSaid } from '../../support/cli.ts'

const secret = 'it-is-a-secret-of-the-test'
const webhooks = `webhooks:
  - path: /webhook/github
    agent: echo
    prompt_template: "#{{event.number}} {{event.pull_request.title}}"
    secret_env: HOOK_SECRET
    filter: { action: opened }
  - path: /other
    agent: echo
    prompt_template: "{{event.text}}"
    secret_env: HOOK_SECRET
    signature_header: X-My-Signature
    signature_algo: sha1
    signature_prefix: ''
  - path: /open
    agent: fail
    prompt_template: "{{event}}"
  - path: /unset
    agent: echo
    prompt_template: x
    secret_env: UNSET_SECRET
  - path: /hangs
    agent: hang
    prompt_template: x
  - path: /off
    agent: echo
    prompt_template: x
    enabled: false
`
const agents = `agents:
  echo: { kind: echo }
  fail: { kind: command, command: ["${process.execPath}", -e, "console.error('no luck'); process.exit(3)"] }
  hang: { kind: command, command: ["${process.execPath}", -e, "setInterval(() => {}, 1000)"] }
`

const gateway = 'oauth: { callback_port: 0 }\nqueue: { drain_timeout: 1s }\n'

describe('cli: webhook', () => {
  let daemon: RunningDaemon
  const cli = async (args: readonly string[], stdin?: string) =>
    run(args, { home: daemon.home, ...(stdin === undefined ? {} : { stdin }) })

  before(async () => {
    daemon = await startDaemon({ webhooks, agents, gateway, env: `HOOK_SECRET=${secret}\n` })
  })
  after(async () => {
    await daemon.stop()
  })

  it('lists events without the reloads of the configuration, and counts these', async () => {
    for (const _ of [1, 2, 3]) assert.equal((await cli(['daemon', 'reload'])).code, 0)
    const short = await cli(['events', '--limit', '1'])
    assert.match(short.stdout, /daemon \S+ started/)
    assert.doesNotMatch(short.stdout, /reloaded/)
    assert.match(short.stderr, /^not shown: 3 reloads of the configuration \(--all\)$/m)
    const all = await cli(['events', '--all'])
    assert.equal(all.stdout.match(/the configuration was reloaded/g)?.length, 3)
    const document = JSON.parse((await cli(['events', '--json'])).stdout) as { events: unknown[] }
    assert.equal(document.events.length, 4)
  })

  it('lists definitions with their URLs and whether the secret is set', async () => {
    const { code, stdout } = await cli(['webhook', 'list'])
    assert.equal(code, 0)
    assert.match(stdout, /^PATH +AGENT +SCHEME +SECRET/)
    assert.match(
      stdout,
      /^\/webhook\/github +echo +hmac +set .*http:\/\/127\.0\.0\.1:\d+\/webhook\/github$/m,
    )
    assert.match(stdout, /^\/unset +echo +hmac +unset/m)
    assert.match(stdout, /^\/off .*disabled$/m)
    const json = JSON.parse((await cli(['webhook', 'list', '--json'])).stdout) as {
      webhooks: WebhookSummary[]
    }
    assert.equal(json.webhooks.length, 6)
  })

  it('sends a real GitHub payload, signed, and never shows the secret', async () => {
    const sent = await cli([
      'webhook',
      'send',
      '/webhook/github',
      '--sample',
      'github:pull_request.opened',
      '--json',
    ])
    assert.equal(sent.code, 0, sent.stderr)
    assert.ok(!`${sent.stdout}${sent.stderr}`.includes(secret))
    const { id, status } = JSON.parse(sent.stdout) as { id: string; status: string }
    assert.equal(status, 'accepted')
    const event = await untilFinished(daemon, id)
    assert.equal(event.state, 'done')
    assert.equal(event.prompt, '#2 Update the README with new information.')
    assert.match(event.deliveryId ?? '', /^[0-9a-f-]{36}$/)
  })

  it('waits for the answer with --wait', async () => {
    const args = ['webhook', 'send', '/other', '-', '--wait']
    const { code, stdout, stderr } = await cli(args, '{"text":"hello\\u001b[31m there"}')
    assert.equal(code, 0, stderr)
    assert.equal(stdout, 'hello there\n')
    assert.match(stderr, /^evt_\w+ accepted$/m)
  })

  it('shows on a terminal what is waited for, and lets go of it by Ctrl-C', async function () {
    if (!hasTerminal()) return this.skip()
    const file = join(await temporaryFolder(), 'payload.json')
    await writeFile(file, '{}')
    const child = startOnTerminal(`webhook send /hangs '${file}' --wait`, { home: daemon.home })
    const ended = resultOf(child)
    const [, id = ''] =
      /(evt_\w+) accepted/.exec(await untilSaid(child, 'stdout', /running hang \(0:0\d\)/)) ?? []
    child.stdin?.write('\u0003')
    const { code, stdout } = await ended
    assert.equal(code, 130)
    assert.match(
      stdout,
      new RegExp(`the event continues in the background:\\s+doorward events show ${id}`),
    )
    const { state } = await daemon.client.get<EventRecord>(`/events/${id}`)
    assert.equal(state, 'running')
  })

  it('says where it ended with --wait when the agent fails', async () => {
    const text = await cli(['webhook', 'send', '/open', '-', '--wait'], '{}')
    assert.equal(text.code, 1)
    assert.match(text.stderr, /failed at agent: .*3/)
    const json = await cli(['webhook', 'send', '/open', '-', '--wait', '--json'], '{}')
    assert.equal(json.code, 1)
    assert.equal((JSON.parse(json.stdout) as EventDetail).state, 'failed')
  })

  it('signs with the header, algorithm and prefix of the definition', async () => {
    const file = join(await temporaryFolder(), 'payload.json')
    await writeFile(file, '{"text":"from a file"}')
    for (const path of ['/other', '/webhook/other']) {
      const { code, stdout, stderr } = await cli(['webhook', 'send', path, file, '--wait'])
      assert.deepEqual([code, stdout], [0, 'from a file\n'], stderr)
    }
  })

  it('ends with 1 and the problem when the webhook is refused', async () => {
    const { code, stdout, stderr } = await cli(
      ['webhook', 'send', '/other', '-', '--json'],
      'no json',
    )
    assert.equal(code, 1)
    assert.equal(stdout, '')
    const { code: problem, hint } = JSON.parse(stderr) as { code: string; hint: string }
    assert.equal(problem, 'payload-not-json')
    assert.match(hint, /fix the payload, then send it again/)
    const off = await cli(['webhook', 'send', '/off', '-', '--json'], '{}')
    assert.equal((JSON.parse(off.stderr) as { code: string }).code, 'webhook-not-found')
  })

  it('says that another secret was used, not which', async () => {
    const { code, stderr } = await run(['webhook', 'send', '/other', '-'], {
      home: daemon.home,
      stdin: '{}',
      env: { HOOK_SECRET: 'another' },
    })
    assert.equal(code, 1)
    assert.match(stderr, /refused with 401/)
    assert.match(stderr, /hint: .*doorward events/)
  })

  it('does not send without the secret', async () => {
    const { code, stderr } = await cli(['webhook', 'send', '/unset', '-', '--json'], '{}')
    assert.equal(code, 1)
    const problem = JSON.parse(stderr) as { code: string; detail: string }
    assert.equal(problem.code, 'unavailable')
    assert.match(problem.detail, /UNSET_SECRET is unset/)
  })

  it('names the nearest webhook, and ends with 1', async () => {
    const { code, stderr } = await cli(['webhook', 'send', '/webhook/gihtub', '-'], '{}')
    assert.equal(code, 1)
    assert.match(stderr, /hint: did you mean "\/webhook\/github"\?/)
  })

  it('lists the samples, and knows the nearest one', async () => {
    const { code, stdout } = await cli(['webhook', 'send', '--sample'])
    assert.equal(code, 0)
    assert.ok(stdout.split('\n').includes('github:pull_request.opened'))
    const near = await cli(['webhook', 'send', '/other', '--sample', 'github:pull_requst.opened'])
    assert.equal(near.code, 2)
    assert.match(near.stderr, /did you mean "github:pull_request\.opened"\?/)
    const short = await cli(['webhook', 'send', '/other', '--sample', 'issues.opened'])
    assert.match(short.stderr, /did you mean "github:issues\.opened"\?/)
  })

  it('ends with 2 when there is nothing to send', async () => {
    for (const args of [
      [],
      ['/other'],
      ['/other', '/no/such/file'],
      ['/other', 'file', '--sample', 'github:ping'],
    ])
      assert.equal((await cli(['webhook', 'send', ...args])).code, 2)
  })

  it('has every sample as one real payload, with its origin and licence', async () => {
    const { stdout } = await cli(['webhook', 'send', '--sample', '--json'])
    const { samples } = JSON.parse(stdout) as { samples: string[] }
    for (const name of [
      'ping',
      'push',
      'issues.opened',
      'issue_comment.created',
      'release.published',
    ])
      assert.ok(samples.includes(`github:${name}`))
    const github = samples.filter((name) => name.startsWith('github:'))
    for (const sender of ['stripe', 'slack'])
      assert.ok(samples.filter((name) => name.startsWith(`${sender}:`)).length >= 5)
    for (const name of github) {
      const file = `assets/samples/github/${name.slice('github:'.length)}.json`
      const payload: unknown = JSON.parse(await readFile(new URL(file, packageFolder), 'utf8'))
      assert.equal(typeof payload, 'object')
      assert.ok(!Array.isArray(payload))
    }
    const notice = await readFile(new URL('assets/samples/NOTICE.md', packageFolder), 'utf8')
    assert.match(notice, /@octokit\/webhooks-examples[\s\S]*MIT License/)
  })

  it('shows an event, its prompt and its answer', async () => {
    const sent = await cli(
      ['webhook', 'send', '/other', '-', '--wait', '--json'],
      '{"text":"one\\ntwo"}',
    )
    const { id } = JSON.parse(sent.stdout) as EventDetail
    const { code, stdout } = await cli(['events', 'show', id])
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(`^id +${id}$`, 'm'))
    assert.match(stdout, /^state +✓ done$/m)
    assert.match(stdout, /\nprompt\n {2}one\n {2}two\n\nanswer\n {2}one\n {2}two\n$/)
    const json = await cli(['events', 'show', id, '--json'])
    assert.equal((JSON.parse(json.stdout) as EventDetail).result, 'one\ntwo')
    const unknown = await cli(['events', 'show', 'evt_none', '--json'])
    assert.equal(unknown.code, 1)
    assert.equal((JSON.parse(unknown.stderr) as { code: string }).code, 'event-not-found')
  })

  it('lists events newest first, of one webhook, so many', async () => {
    const args = ['events', '--webhook', '/other', '--limit', '2']
    const { code, stdout } = await cli(args)
    assert.equal(code, 0)
    const lines = stdout.trimEnd().split('\n')
    assert.equal(lines.length, 3)
    assert.match(lines[0] ?? '', /^ID +TIME +STATE/)
    for (const line of lines.slice(1))
      assert.match(line, /^[0-9a-f]{8} .* \/other: .* \/other  (\d+ms|-) +-$/)
    const { events } = JSON.parse((await cli([...args, '--json'])).stdout) as {
      events: EventRecord[]
    }
    assert.ok((events[0]?.receivedAt ?? '') >= (events[1]?.receivedAt ?? ''))
  })
})
