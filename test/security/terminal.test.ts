import assert from 'node:assert/strict'
import { appendFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../cli/support/cli.ts'
import { type ContractServer, startContractServer } from '../cli/support/contract-server.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'

/** What clears a screen, sets its title, writes to the clipboard, asks for an answer, or turns a line. */
const evil =
  'x\u001b[2J\u001b]0;owned\u0007\u001b]52;c;cm0=\u0007\u009b31m\u001b[6n\u202e\u2066\rz\u0008\u0000'
const harmful =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/

const time = '2026-01-01T00:00:00.000Z'
const account = { id: evil, name: evil }
const event = {
  id: `evt_1${evil}`,
  kind: 'webhook',
  webhook: `/${evil}`,
  receivedAt: time,
  state: 'failed',
  stage: 'agent',
  code: evil,
  detail: evil,
  deliveryId: evil,
  agent: evil,
  target: evil,
  attempts: 1,
  durations: { queuedMs: 1, agentMs: 1, deliverMs: 1 },
  targets: [{ target: evil, state: 'failed', attempts: 1, detail: evil }],
  resultPreview: evil,
}
const token = {
  provider: `p${evil}`,
  status: 'needs-login',
  account,
  scopes: [evil],
  missingScopes: [evil],
  expiresAt: time,
  refreshable: true,
  obtainedAt: time,
}
const webhook = {
  path: `/${evil}`,
  url: `http://127.0.0.1:1/${evil}`,
  agent: evil,
  enabled: true,
  scheme: evil,
  secret: 'unset',
  deliverTo: [evil],
  counts: { accepted: 1, filtered: 0, duplicate: 0, rejected: 0, done: 0, failed: 1, dropped: 0 },
  lastEventAt: time,
}
const problem = { code: evil, detail: evil, hint: `doorward ${evil}` }
const documents: readonly (readonly [RegExp, unknown])[] = [
  [
    /^GET \/status/,
    {
      version: evil,
      startedAt: time,
      url: `http://${evil}`,
      publicUrl: `http://${evil}`,
      queue: { waiting: 0, running: 0, bytes: 0 },
      providers: [{ provider: `p${evil}`, clientKnown: true, status: 'needs-login', account }],
      tokens: [token],
      webhooks: [webhook],
      events: [event],
      problems: [problem],
    },
  ],
  [/^GET \/webhooks/, { webhooks: [webhook] }],
  [/^GET \/events\?/, { events: [event] }],
  [/^GET \/events\//, { ...event, prompt: evil, result: evil }],
  [/^POST \/events\//, { ...event, prompt: evil, result: evil }],
  [
    /^POST \/webhooks\/explain/,
    {
      webhook: `/${evil}`,
      signature: { scheme: evil, result: 'invalid', detail: evil },
      matches: false,
      filter: [{ path: evil, expected: [evil], actual: { [evil]: evil }, matches: false }],
      prompt: evil,
      substituted: [{ path: evil, start: 0, end: 3 }],
      agent: { name: evil, kind: evil, argv: [evil, `-${evil}`], detail: evil },
      targets: [{ target: evil, parts: [evil], detail: evil }],
    },
  ],
  [
    /^POST \/webhooks\/learn/,
    {
      webhook: `/${evil}`,
      paths: [{ path: evil, type: evil }],
      cut: true,
      filter: [evil],
      promptTemplate: evil,
    },
  ],
  [/^POST \/daemon\/reload/, { status: 'reloaded', webhooks: 1, agents: 1, problems: [problem] }],
  [/^GET \/oauth\/tokens\/[^/]+\/access/, undefined],
  [/^GET \/oauth\/tokens/, { tokens: [token] }],
  [
    /^DELETE \/oauth\/tokens/,
    { provider: evil, removed: true, revokedAtProvider: false, detail: evil },
  ],
]

const commands: readonly (readonly string[])[] = [
  ['status'],
  ['daemon', 'status'],
  ['daemon', 'reload'],
  ['events'],
  ['events', 'show', 'evt_1'],
  ['events', 'retry', 'evt_1'],
  ['events', 'cancel', 'evt_1'],
  ['webhook', 'list'],
  ['webhook', 'explain', '/hook', '-'],
  ['webhook', 'learn', '/hook', '-'],
  ['oauth', 'list'],
  ['oauth', 'logout', 'github'],
  ['oauth', 'token', 'github'],
]

describe('text from outside on a terminal', () => {
  let server: ContractServer
  let refusing: ContractServer
  before(async () => {
    server = await startContractServer(({ method, path }) => {
      const [, document] = documents.find(([pattern]) => pattern.test(`${method} ${path}`)) ?? []
      return document === undefined
        ? [502, { type: 'about:blank', title: evil, status: 502, ...problem }]
        : [200, document]
    })
    refusing = await startContractServer(() => [
      409,
      { type: 'about:blank', title: evil, status: 409, ...problem },
    ])
  })
  after(async () => {
    await server.close()
    await refusing.close()
  })

  const isHarmless = (what: string, text: string): void => {
    const found = harmful.exec(text)
    assert.equal(
      found,
      null,
      `${what}: ${JSON.stringify(text.slice(Math.max(0, (found?.index ?? 0) - 60)).slice(0, 120))}`,
    )
  }

  for (const command of commands)
    it(`is harmless in ${command.join(' ')}, as an answer, as an error and as JSON`, async () => {
      for (const { home } of [server, refusing])
        for (const more of [[], ['--json']]) {
          const result = await run([...command, '--no-start', ...more], {
            home,
            stdin: JSON.stringify({ a: evil }),
          })
          isHarmless(`${command.join(' ')} ${more.join()} (stdout)`, result.stdout)
          isHarmless(`${command.join(' ')} ${more.join()} (stderr)`, result.stderr)
          assert.ok(result.stdout + result.stderr !== '')
        }
    })

  it('is harmless in what its own arguments say', async () => {
    const { home } = server
    for (const command of [
      [evil],
      ['events', 'show', `evt_${evil}`],
      ['oauth', 'login', evil],
      ['webhook', 'send', `/${evil}`],
      ['config', 'schema', evil],
      [`--${evil}`],
    ]) {
      const given = command.map((text) => text.replaceAll('\u0000', ''))
      const { stdout, stderr, code } = await run([...given, '--no-start'], { home })
      isHarmless('arguments', stdout + stderr)
      assert.notEqual(code, null)
    }
  })

  it('is harmless in a log that others could write to, and in what is wrong with a configuration', async () => {
    const quoted = JSON.stringify(evil)
    const home = await temporaryHome({
      webhooks: `webhooks:\n  - { path: ${quoted}, agent: ${quoted}, ${quoted}: 1, prompt_template: "{{${evil.replaceAll(/[\u0000-\u001f]/g, '')}}}" }\n`,
      gateway: `server: { host: ${quoted} }\n? ${quoted}\n: 1\n`,
      agents: `agents:\n  ${quoted}: { kind: ${quoted} }\n`,
    })
    await mkdir(home.logs, { recursive: true, mode: 0o700 })
    await writeFile(home.log, `${JSON.stringify({ level: 40, time, msg: evil, [evil]: evil })}\n`)
    await appendFile(home.log, `not JSON ${evil}\n`)
    for (const command of [
      ['config', 'check'],
      ['config', 'check', '--json'],
      ['daemon', 'logs'],
    ]) {
      const { stdout, stderr } = await run(command, { home })
      isHarmless(command.join(' '), stdout.replaceAll(/\r?\n/g, '\n') + stderr)
      assert.ok(stdout + stderr !== '')
    }
  })

  it('is harmless in the name of a home', async () => {
    const root = join(await temporaryFolder(), 'x\u001b[2J\u202e')
    const { stdout, stderr } = await run(['status', '--no-start', '--home', root])
    isHarmless('home', stdout + stderr)
    const initialised = await run(['init', '--home', root])
    isHarmless('init', initialised.stdout + initialised.stderr)
  })
})
