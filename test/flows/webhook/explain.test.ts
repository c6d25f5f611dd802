import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createCommentMarks } from '../../../daemon/delivery/loop-guard.ts'
import type { EventRecord, Status } from '../../../shared/api/api.ts'
import {
  type Explanation,
  type PayloadDescription,
  explanationSchema,
  payloadDescriptionSchema,
} from '../../../shared/api/explain.ts'
import { run, start, untilSaid } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const secret = 'a secret of the flow test'
const payload = { action: 'opened', title: 'canary title', user: { login: 'octocat' }, n: 7 }
const body = JSON.stringify(payload)

describe('a webhook that is looked at before it is trusted', () => {
  let daemon: RunningDaemon
  let file: string
  const ask = async (request: object): Promise<Explanation> =>
    explanationSchema.parse(await daemon.client.post('/webhooks/explain', request))
  const explain = (path: string, headers?: Record<string, string | string[]>) =>
    ask({ path, payload: body, ...(headers && { headers }) })
  const cli = (...args: string[]) => run(args, { home: daemon.home })

  before(async () => {
    daemon = await startDaemon({
      env: `HOOK_SECRET=${secret}\n`,
      agents: `
agents:
  echo: { kind: echo }
  missing: { kind: llm, env: { PATH: /nowhere } }
  lost: { kind: command, command: [no-such-program-anywhere] }
  program: { kind: command, command: ["${process.execPath}", -e, "process.exit(9)"] }
`,
      webhooks: `
webhooks:
  - path: /signed
    agent: program
    secret_env: HOOK_SECRET
    prompt_template: "{{event.title}} by {{event.user.login}}, {{event.title}}"
    filter: { action: [opened, reopened], user.login: octocat, missing.path: x }
    deliver_to: [log, "file:out/{{event.n}}.md", "file:{{event.nothing}}.md"]
  - { path: /open, agent: echo, prompt_template: "#{{event.n}}\\n{{event.user}}", filter: { n: 7 } }
  - { path: /prefix, agent: echo, prompt_template: x, filter: { event.n: 7, event.x: 1 } }
  - path: /tests
    agent: echo
    prompt_template: x
    filter:
      n: { above: 5, below: 7 }
      labels.name: bug
      tags.app.io/kind: web
      headers.x-kind: { glob: a*, not: abc }
      any: [{ action: closed }, { none: [{ title: { contains: canary } }], 'list[*]': 2 }]
  - { path: /failing, agent: echo, prompt_template: x, deliver_to: [log, "file:{{event.nothing}}.md"] }
  - { path: /files, agent: echo, prompt_template: x, deliver_to: ["file:{{event.action}}.md", "file:{{event.folder}}/x.md", "file:~/no-such-folder/x.md", "file:/no-such-folder/{{event.n}}.md"] }
  - { path: /empty, agent: echo, prompt_template: "{{event.n}}{{event.gone}}{{event.user.x}}{{event.gone}}" }
  - { path: /unset, agent: echo, prompt_template: x, secret_env: UNSET }
  - { path: /missing, agent: missing, prompt_template: x }
  - { path: /lost, agent: lost, prompt_template: x }
  - { path: /off, agent: echo, prompt_template: x, enabled: false }
`,
    })
    file = join(await temporaryFolder(), 'payload.json')
    await writeFile(file, body)
  })
  after(async () => {
    // Nothing was run, sent, noted or written down.
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
    assert.ok(events.every(({ webhook }) => webhook !== '/signed'))
    assert.doesNotMatch(await readFile(daemon.home.log, 'utf8'), /canary/)
    assert.equal(await daemon.stop(), 0)
  })

  it('says that the program of the agent is not here, and how it comes', async () => {
    const { agent, matches } = await explain('/missing')
    const detail =
      "llm is not on the daemon's PATH; install it with: pipx install llm; if it is installed: doorward doctor"
    assert.deepEqual([matches, agent.kind, agent.detail], [true, 'llm', detail])
    const { stdout } = await cli('webhook', 'explain', '/missing', file)
    assert.match(stdout, /^outcome +it would be accepted and then fail/m)
    assert.match(stdout, /✗ llm is not on the daemon's PATH; install it with: pipx install llm;/)
  })

  it('says that a command cannot start', async () => {
    const { agent } = await explain('/lost')
    assert.match(
      agent.detail ?? '',
      /^it cannot start: the program no-such-program-anywhere is not on PATH; install it, or/,
    )
  })

  it('names the webhook that was meant', async () => {
    const { code, stderr } = await cli('webhook', 'explain', '/webhook/missin', file)
    assert.equal(code, 1)
    assert.match(stderr, /hint: did you mean "\/webhook\/missing"\?/)
  })

  it('says what each step would say', async () => {
    const explanation = await explain('/signed')
    assert.deepEqual(explanation.signature, {
      scheme: 'hmac',
      result: 'not-given',
      detail: 'there is no x-hub-signature-256 header: a delivery without it is refused',
    })
    assert.equal(explanation.matches, false)
    assert.deepEqual(explanation.filter, [
      {
        path: 'action',
        expected: ['opened', 'reopened'],
        condition: '"opened" or "reopened"',
        actual: 'opened',
        matches: true,
      },
      {
        path: 'user.login',
        expected: ['octocat'],
        condition: '"octocat"',
        actual: 'octocat',
        matches: true,
      },
      { path: 'missing.path', expected: ['x'], condition: '"x"', actual: null, matches: false },
    ])
    assert.equal(explanation.prompt, 'canary title by octocat, canary title')
    assert.deepEqual(
      explanation.substituted.map(({ path, start, end }) => [
        path,
        explanation.prompt.slice(start, end),
      ]),
      [
        ['event.title', 'canary title'],
        ['event.user.login', 'octocat'],
        ['event.title', 'canary title'],
      ],
    )
    assert.deepEqual(explanation.agent, {
      name: 'program',
      kind: 'command',
      argv: [process.execPath, '-e', 'process.exit(9)'],
    })
    const [log, out, invalid] = explanation.targets
    assert.deepEqual(log, { target: 'log', parts: [explanation.prompt] })
    assert.equal(out?.target, 'file:out/7.md')
    assert.deepEqual([invalid?.parts, typeof invalid?.detail], [[], 'string'])
  })

  it('says that a path of a filter is written as in a prompt', async () => {
    const [meant, other] = (await explain('/prefix')).filter
    const hint = 'write n: paths of a filter have no event. in front'
    assert.deepEqual([meant?.actual, meant?.hint, other?.hint], [null, hint, undefined])
    const { stdout } = await cli('webhook', 'explain', '/prefix', file)
    assert.match(stdout, /✗ event\.n is missing or null, expected "7"; write n: paths of/)
  })

  it('shows each test with the actual value, and similar paths that exist', async () => {
    const { filter, matches } = await ask({
      path: '/tests',
      headers: { 'X-Kind': 'axe' },
      payload: {
        ...payload,
        labels: [{ name: 'bug' }],
        tags: { 'app.io/kind': 'web' },
        list: [1, 2],
      },
    })
    assert.equal(matches, false)
    assert.deepEqual(
      filter.map(({ path, condition, actual, matches, hint, within }) => [
        within ?? '',
        path,
        condition,
        actual,
        matches,
        hint ?? '',
      ]),
      [
        ['', 'n', 'above 5 and below 7', 7, false, ''],
        ['', 'labels.name', '"bug"', null, false, 'did you mean labels[*].name?'],
        ['', 'tags.app.io/kind', '"web"', null, false, 'did you mean tags["app.io/kind"]?'],
        ['', 'headers.x-kind', 'not "abc" and glob "a*"', 'axe', true, ''],
        ['', 'any', 'one of its 2 filters to match', null, false, ''],
        ['any[0]', 'action', '"closed"', 'opened', false, ''],
        ['any[1]', 'list[*]', '"2"', [1, 2], true, ''],
        ['any[1]', 'none', 'its filter not to match', null, false, ''],
        ['any[1].none[0]', 'title', 'to contain "canary"', 'canary title', true, ''],
      ],
    )
    const { stdout } = await cli('webhook', 'explain', '/tests', file)
    assert.match(stdout, /^filter +✗ n is 7, expected above 5 and below 7$/m)
    assert.match(
      stdout,
      /✗ headers\.x-kind is missing or null, expected not "abc" and glob "a\*"$/m,
    )
    assert.match(stdout, /✗ any: expected one of its 2 filters to match$/m)
    assert.match(
      stdout,
      /^ +any\[1\]\.none\[0\] ✓ title is "canary title", expected to contain "canary"$/m,
    )
  })

  it('marks the targets that would get nothing, and counts them', async () => {
    const { stdout } = await cli('webhook', 'explain', '/failing', file)
    assert.match(stdout, /^outcome +the agent would run, and 1 of 2 targets would get nothing$/m)
    assert.match(stdout, /^targets +log: one message\n +✗ file:\{\{event\.nothing\}\}\.md: \S/m)
  })

  it('says which files could not be written, and makes none', async () => {
    const { targets } = await ask({ path: '/files', payload: { ...payload, folder: 'config' } })
    assert.deepEqual(
      targets.map(({ parts, detail = '' }) => [parts.length, detail.replace(/^.*\/x?\S* ?/, '')]),
      [
        [1, ''],
        [0, "is one of doorward's own files"],
        [0, 'its folder does not exist'],
        [0, 'its folder does not exist'],
      ],
    )
    await assert.rejects(stat(join(daemon.home.root, 'opened.md')), { code: 'ENOENT' })
  })

  it('names the placeholders that find nothing, each once', async () => {
    const { stdout } = await cli('webhook', 'explain', '/empty', file)
    assert.match(
      stdout,
      /^missing +! \{\{event\.gone\}\}, \{\{event\.user\.x\}\} of the prompt: missing, null or empty/m,
    )
    assert.doesNotMatch((await cli('webhook', 'explain', '/open', file)).stdout, /^missing/m)
  })

  it('checks a signature as it is checked in earnest, and names the cause', async () => {
    const good = githubHeaders(body, secret)
    assert.deepEqual((await explain('/signed', good)).signature, {
      scheme: 'hmac',
      result: 'valid',
    })
    const name = 'X-Hub-Signature-256'
    const value = good['x-hub-signature-256'] ?? ''
    assert.equal((await explain('/signed', { [name]: value })).signature.result, 'valid')
    for (const wrong of [
      value.replace('sha256=', ''),
      `sha256=${'0'.repeat(64)}`,
      [value, value],
    ]) {
      const { signature } = await explain('/signed', { [name]: wrong })
      assert.equal(signature.result, 'invalid')
      assert.ok(signature.detail)
      assert.ok(!signature.detail.includes(secret))
    }
    assert.equal((await explain('/open')).signature.result, 'not-required')
    const { signature } = await explain('/unset', good)
    assert.deepEqual(
      [signature.result, signature.detail],
      ['invalid', 'its secret_env names a variable that is unset or empty'],
    )
  })

  it('takes a payload as JSON too, and says what cannot be read', async () => {
    const { matches, prompt } = await ask({ path: '/webhook/open', payload })
    assert.deepEqual([matches, prompt], [true, '#7\n{"login":"octocat"}'])
    const refused = async (request: object, code: string) =>
      assert.rejects(daemon.client.post('/webhooks/explain', request), { code })
    await refused({ path: '/open', payload: '{' }, 'payload-not-json')
    const deep = '['.repeat(100_000) + ']'.repeat(100_000)
    const reply = await send(`${daemon.url}/webhooks/explain`, {
      headers: { authorization: `Bearer ${daemon.apiToken}`, 'content-type': 'application/json' },
      body: `{"path":"/open","payload":${deep}}`,
    })
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'payload-not-json'])
    await refused({ path: '/open' }, 'request-invalid')
    await refused({ path: '/nothing', payload }, 'webhook-not-found')
    await refused({ path: '/off', payload }, 'webhook-not-found')
    await refused({ path: '/open', payload, more: 1 }, 'request-invalid')
    const form = { 'content-type': 'text/plain' }
    await refused({ path: '/open', payload: body, headers: form }, 'media-type-unsupported')
  })

  it('agrees with what then happens', async () => {
    const { prompt, matches } = await explain('/open')
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}/open`, { headers, body })
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.deepEqual([matches, event.state, event.prompt], [true, 'done', prompt])
    const ping = await explain('/open', { 'x-github-event': 'ping' })
    assert.deepEqual([ping.matches, ping.handshake], [false, 'ping'])
  })

  it('is explained on the command line, with what is substituted marked', async () => {
    const { code, stdout } = await cli('webhook', 'explain', '/signed', file)
    assert.equal(code, 0)
    assert.match(stdout, /^signature +- not given \(hmac\)/m)
    assert.match(stdout, /✓ action is "opened", expected "opened" or "reopened"/)
    assert.match(stdout, /✗ missing\.path is missing or null, expected "x"/)
    assert.match(stdout, /^outcome +once it is signed, it would be filtered out$/m)
    assert.match(stdout, /^ {2}\[canary title\] by \[octocat\], \[canary title\]$/m)
    const header = `X-Hub-Signature-256: ${githubHeaders(body, secret)['x-hub-signature-256']}`
    const signed = await cli('webhook', 'explain', '/signed', file, '--header', header, '--json')
    assert.equal((JSON.parse(signed.stdout) as Explanation).signature.result, 'valid')
    const sample = await cli('webhook', 'explain', '/open', '--sample', 'github:ping')
    assert.match(sample.stdout, /^outcome +it would be answered as a ping$/m)
    const usage = await cli('webhook', 'explain', '/open')
    assert.equal(usage.code, 2)
  })

  it('says that the rule would not run for a comment of our own', async () => {
    const token = (await readFile(daemon.home.apiToken, 'utf8')).trim()
    const marks = createCommentMarks(token)
    const own = marks.toBody(marks.markFor('evt_0123456789abcdef01', 1, 'an answer'), 'an answer')
    const { ownComment, matches } = await ask({
      path: '/open',
      payload: { ...payload, comment: { body: own } },
    })
    assert.deepEqual([ownComment, matches], [true, false])
  })

  it('is learned from the next delivery, filtered or not, by its paths without values', async () => {
    const over = new AbortController()
    const deliver = async () => {
      while (!over.signal.aborted)
        await send(`${daemon.url}/open`, {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ type: 'canary', n: 8 }),
        })
    }
    const learning = start(['webhook', 'learn', '/open', '--json'], { home: daemon.home })
    const said = untilSaid(learning, 'stdout', /\n\}\n$/)
    // Nobody outside can tell when it has begun to wait: deliveries come until it has learned.
    const delivering = deliver()
    const learned = await said
    over.abort()
    await delivering
    const lesson = payloadDescriptionSchema.parse(JSON.parse(learned))
    assert.deepEqual(lesson.paths, [
      { path: 'type', type: 'text' },
      { path: 'n', type: 'number' },
    ])
    assert.deepEqual([lesson.webhook, lesson.filter], ['/open', ['type']])
    assert.doesNotMatch(learned, /canary/)
  })

  it('is learned from a file', async () => {
    const { code, stdout } = await cli('webhook', 'learn', '/open', '--from', file)
    assert.equal(code, 0)
    assert.match(stdout, /^event\.user\.login +text$/m)
    assert.match(stdout, /^ {4}filter:\n {6}action: ''/m)
    assert.match(stdout, /^ {6}title: \{\{event\.title\}\}$/m)
    assert.doesNotMatch(stdout, /canary|octocat/)
    // The proposal comes first, however many paths there are.
    assert.match(stdout, /^# for \/open in webhooks\.yaml\n/)
    const many = join(await temporaryFolder(), 'many.json')
    const fields = Array.from({ length: 30 }, (_, index) => [`field${index}`, index])
    await writeFile(many, JSON.stringify(Object.fromEntries(fields)))
    const few = await cli('webhook', 'learn', '/open', '--from', many)
    assert.match(
      few.stdout,
      /\nPATH +TYPE\n(event\.field\d.*\n){10}… and 20 others: --all shows them\n$/,
    )
    const all = await cli('webhook', 'learn', '/open', '--from', many, '--all')
    assert.match(all.stdout, /(event\.field\d.*\n){30}$/)
    const unwritten = await cli('webhook', 'learn', '/opne', '--from', file)
    assert.equal(unwritten.code, 0)
    assert.match(unwritten.stdout, /^ {6}action: ''/m)
    assert.match(unwritten.stderr, /^no webhook is defined at "\/opne"; did you mean "\/open"\?$/m)
    const events = await cli('events', '--webhook', 'open')
    assert.equal(events.code, 0)
    assert.match(events.stderr, /^no webhook is defined at "open"; did you mean "\/open"\?$/m)
    const none = await cli('webhook', 'learn', '/nothing')
    assert.equal(none.code, 1)
    assert.match(none.stderr, /no webhook at this path/)
  })

  it('is waited for no longer when whoever learns has gone, or the daemon stops', async () => {
    const control = new AbortController()
    const gone = daemon.client.post<PayloadDescription>(
      '/webhooks/learn',
      { path: '/unset' },
      { signal: control.signal, timeoutMs: 0 },
    )
    control.abort()
    await assert.rejects(gone, { code: 'interrupted' })
    assert.equal((await daemon.client.get<Status>('/status')).queue.running, 0)
  })
})
