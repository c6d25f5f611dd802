import assert from 'node:assert/strict'
import {
  checkConfiguration,
  shapeFault,
} from '../../../../cli/commands/doctor/checks/configuration.ts'
import {
  type HomeEntry,
  type HomeFacts,
  checkHome,
} from '../../../../cli/commands/doctor/checks/home.ts'
import { checkLogins, collectTokenFiles } from '../../../../cli/commands/doctor/checks/logins.ts'
import { checkMachines } from '../../../../cli/commands/doctor/checks/machines.ts'
import { checkPorts } from '../../../../cli/commands/doctor/checks/ports.ts'
import {
  type ClockFacts,
  checkGit,
  isAtLeast,
  checkClock,
} from '../../../../cli/commands/doctor/checks/system.ts'
import { checkTray } from '../../../../cli/commands/doctor/checks/tray.ts'
import { checkTunnel, type TunnelAnswer } from '../../../../cli/commands/doctor/checks/tunnel.ts'
import { gatewayFileSchema } from '../../../../shared/config/schema.ts'
import { checkConfig } from '../../../../shared/config/load.ts'
import { readYaml } from '../../../../shared/config/yaml.ts'
import { storeLogin } from '../../../support/providers/stored-login.ts'
import { statusWith } from '../../../support/daemon/fake-daemon.ts'
import { temporaryHome } from '../../../support/temporary.ts'

describe('doctor: configuration', () => {
  it('warns of limits and providers that cannot work', () => {
    const gateway = 'providers: { x: {} }\nqueue: { max_bytes: 1mb }\n'
    const config = checkConfig(
      readYaml('gateway.yaml', gateway),
      readYaml('agents.yaml', ''),
      readYaml('webhooks.yaml', ''),
      {},
    )
    const checks = checkConfiguration({ config, problems: [], env: {}, fileEnv: {} }, true, [])
    assert.deepEqual(
      checks.map(({ name, status }) => [name, status]),
      [
        ['files', 'ok'],
        ['limits', 'warning'],
        ['providers', 'warning'],
      ],
    )
  })

  it('warns of words in filters and prompts that do nothing', () => {
    const entry = '{ path: /a, agent: a, prompt_template: "{{event.x", filter: { ref: "x/*" } }'
    const config = checkConfig(
      readYaml('gateway.yaml', ''),
      readYaml('agents.yaml', 'agents: { a: { kind: echo } }'),
      readYaml('webhooks.yaml', `webhooks: [${entry}]`),
      {},
    )
    const checks = checkConfiguration({ config, problems: [], env: {}, fileEnv: {} }, true, [])
    assert.deepEqual(
      checks.map(({ name, status }) => [name, status]),
      [
        ['files', 'ok'],
        ['prompts', 'warning'],
        ['filters', 'warning'],
      ],
    )
  })
})

describe('doctor: logins', () => {
  const config = checkConfig(
    readYaml('gateway.yaml', 'targets: { slack: { login: slack@team } }\n'),
    readYaml(
      'agents.yaml',
      'agents: { a: { kind: command, command: [x], env: { T: oauth:github } } }',
    ),
    readYaml(
      'webhooks.yaml',
      'webhooks: [{ path: /w, agent: a, prompt_template: x, deliver_to: "slack:#a" }]',
    ),
    {},
  )

  it('looks for the account that a target names, or that the name of the provider means', async () => {
    const home = await temporaryHome()
    await storeLogin(home, 'github@work', 'refresh', 0)
    const now = new Date()
    const files = await collectTokenFiles(home, now.getTime())
    const check = (defaults: Readonly<Record<string, string>>) =>
      checkLogins(files, undefined, { config, env: {} }, now, defaults).flatMap(
        ({ name, status, hint }) => (status === 'error' ? [[name, hint]] : []),
      )
    const slack = ['slack@team', 'doorward oauth login slack@team']
    assert.deepEqual(check({}), [slack, ['github', 'doorward oauth login github']])
    assert.deepEqual(check({ github: 'work' }), [slack])
  })
})

describe('doctor: home', () => {
  const facts = (entries: readonly HomeEntry[], more: Partial<HomeFacts> = {}): HomeFacts => ({
    root: '/h',
    hasModes: true,
    uid: 1000,
    exists: true,
    entries,
    isWritable: true,
    freeBytes: 5 * 1024 ** 3,
    ...more,
  })
  const entry = (more: Partial<HomeEntry>): HomeEntry => ({
    path: '/h/.env',
    role: 'secret-file',
    is: 'file',
    uid: 1000,
    mode: 0o600,
    ...more,
  })
  const folder = { role: 'folder', is: 'folder', path: '/h' } as const

  const cases: readonly (readonly [string, Partial<HomeEntry>, string, RegExp, string?])[] = [
    ['a closed secret', {}, 'ok', /./],
    ['a secret that others can read', { mode: 0o644 }, 'error', /mode 644/, 'chmod 600 /h/.env'],
    ['a secret of another user', { uid: 0 }, 'error', /user \(0\)/, 'sudo chown 1000 /h/.env'],
    ['a link in place of a secret', { is: 'link' }, 'error', /is a link/],
    ['a folder in place of a secret', { is: 'folder' }, 'error', /is not a file/],
    ['a home that others can list', { ...folder, mode: 0o755 }, 'warning', /look into/],
    ['a home that others can write', { ...folder, mode: 0o775 }, 'error', /write to/],
    [
      'a folder of secrets that others can list',
      { ...folder, path: '/h/my run', role: 'secret-folder', mode: 0o750 },
      'error',
      /mode 750/,
      "chmod 700 '/h/my run'",
    ],
    [
      'a configuration that others can write',
      { path: '/h/config/agents.yaml', role: 'config-file', mode: 0o646 },
      'error',
      /write to/,
    ],
    [
      'a configuration that others can read',
      { path: '/h/config/agents.yaml', role: 'config-file', mode: 0o644 },
      'ok',
      /./,
    ],
  ]
  for (const [title, more, status, detail, hint] of cases)
    it(`tells ${title}`, () => {
      const [check] = checkHome(facts([entry(more)]))
      assert.equal(check?.status, status)
      assert.match(check.detail, detail)
      if (hint !== undefined) assert.equal(check.hint, hint)
    })

  it('says which disk is full, and where no home is yet', () => {
    const disk = (freeBytes: number) => checkHome(facts([], { freeBytes })).at(-1)
    assert.equal(disk(1000)?.status, 'error')
    assert.equal(disk(20 * 1024 ** 2)?.status, 'warning')
    const none = checkHome(facts([], { exists: false }))
    assert.deepEqual(
      none.map(({ status, hint }) => [status, hint]),
      [['warning', 'doorward init']],
    )
  })
})

describe('doctor: secrets', () => {
  for (const text of ['changeme', 'your-webhook-secret', '<secret>', 'xxxx', 'REPLACE_ME', '$X'])
    it(`takes ${text} for a placeholder`, () => assert.equal(shapeFault(text)?.bad, true))

  it('tells a secret that can be guessed from one that cannot', () => {
    assert.match(shapeFault('hunter2hunter2')?.reason ?? '', /shorter than 16/)
    assert.match(shapeFault('abababababababababab')?.reason ?? '', /repeats/)
    assert.equal(shapeFault('4f6f1c0d9b7a4e52a9f1'), undefined)
    assert.equal(shapeFault('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'), undefined)
  })
})

describe('doctor: system', () => {
  it('compares versions by their numbers', () => {
    assert.equal(isAtLeast('v20.20.2', '>=20.19'), true)
    assert.equal(isAtLeast('v20.9.0', '>=20.19'), false)
    assert.equal(isAtLeast('v18.20.0', '>=20.19'), false)
    assert.equal(isAtLeast('v22.0.0', '>=20.19'), true)
  })

  it('looks at git where a rule has a workspace', () => {
    const shown = (isNeeded: boolean, found?: string) =>
      checkGit(isNeeded, found).map(({ status, detail }) => `${status}: ${detail}`)
    assert.deepEqual(shown(false), [])
    assert.deepEqual(shown(true, '2.39.5'), ['ok: 2.39.5'])
    assert.deepEqual(shown(true, '2.25.1'), ['error: 2.25.1 is too old for a workspace'])
    assert.deepEqual(shown(true), ['error: a rule has a workspace, and there is no git'])
  })

  const hour = 3_600_000
  const nothing: ClockFacts = { movedMs: undefined, isSynchronized: undefined }
  const clocks: readonly (readonly [string, Partial<ClockFacts>, number | undefined, string])[] = [
    ['of which nothing is known', {}, undefined, 'skipped'],
    ['that the system synchronizes', { isSynchronized: true }, undefined, 'ok'],
    ['that the system does not synchronize', { isSynchronized: false }, undefined, 'skipped'],
    ['that was changed', { movedMs: -hour }, undefined, 'warning'],
    ['that a server contradicts', { isSynchronized: true }, hour, 'error'],
    ['that a server confirms', {}, 700, 'ok'],
  ]
  for (const [title, facts, skewMs, status] of clocks)
    it(`checks a clock ${title}`, () =>
      assert.equal(checkClock({ ...nothing, ...facts }, skewMs).status, status))

  it('tells nobody to ask others who has done so', () => {
    assert.match(checkClock(nothing, undefined).detail, /--online/)
    assert.doesNotMatch(checkClock(nothing, undefined, true).detail, /--online/)
  })
})

describe('doctor: ports', () => {
  it('takes the daemon for a login that waits only where it listens for one', () => {
    const daemon = { pid: 7, url: 'http://127.0.0.1:4000', publicUrl: 'http://127.0.0.1:4001' }
    const callback = (port: number) => {
      const facts = { what: 'callback', setting: 'oauth.callback_port', port, is: 'held' } as const
      return checkPorts([{ ...facts, holder: { pid: 7, name: 'node' } }], daemon)[0]
    }
    assert.deepEqual(
      [4000, 4001, 4002].map((port) => callback(port)?.status),
      ['error', 'error', 'ok'],
    )
    assert.match(
      callback(4000)?.detail ?? '',
      /^4000 is the port of the daemon itself: logins cannot return/,
    )
  })
})

describe('doctor: tunnel', () => {
  const gateway = gatewayFileSchema.parse({ server: { public_url: 'https://t.example' } })
  const judge = (answer: TunnelAnswer) => checkTunnel(gateway, [answer], true)[0]
  const answers: readonly (readonly [string, TunnelAnswer, string])[] = [
    ['an open route', { path: '/status', status: 200, is: 'route' }, 'error'],
    ['health', { path: '/health', status: 200, is: 'route' }, 'error'],
    [
      'a route that only the token protects',
      { path: '/events', status: 401, is: 'refusal', code: 'unauthorized' },
      'error',
    ],
    [
      'a refused route',
      { path: '/events', status: 403, is: 'refusal', code: 'host-forbidden' },
      'ok',
    ],
    ['another program', { path: '/status', status: 200, is: 'other' }, 'warning'],
    ['a page that is not there', { path: '/status', status: 404, is: 'other' }, 'ok'],
    ['no answer at all', { path: '/status', status: 0, is: 'nothing', why: 'x' }, 'error'],
    [
      'a webhook that takes POST',
      { path: '/webhook/a', status: 405, is: 'refusal', code: 'method-not-allowed' },
      'ok',
    ],
    ['a webhook of another program', { path: '/webhook/a', status: 502, is: 'other' }, 'error'],
  ]
  for (const [title, answer, status] of answers)
    it(`judges ${title}`, () => assert.equal(judge(answer)?.status, status))

  it('says why nothing was asked', () => {
    const none = gatewayFileSchema.parse({})
    assert.match(checkTunnel(none, undefined, true)[0]?.detail ?? '', /no server\.public_url/)
    assert.match(checkTunnel(gateway, undefined, true)[0]?.detail ?? '', /--online/)
    assert.match(checkTunnel(gateway, undefined, false)[0]?.detail ?? '', /does not run/)
  })
})

describe('doctor: tray', () => {
  const good = {
    platform: 'linux',
    arch: 'x64',
    program: 'good',
    pid: undefined,
    hasDisplay: true,
    hasBus: true,
    hasHost: true,
    hasNotifications: true,
    hasLibrary: true,
  } as const
  const statusOf = (facts: Parameters<typeof checkTray>[0], name: string) =>
    checkTray(facts).find((check) => check.name === name)?.status

  it('is content with a desktop that has everything', () => {
    assert.deepEqual(
      checkTray({ ...good, pid: 5 }).map(({ status }) => status),
      ['ok', 'ok', 'ok', 'ok', 'ok'],
    )
  })

  it('says that nobody is shown what a webhook delivers to it while it does not run', () => {
    const webhook = { path: '/orders', enabled: true, rules: [{ targets: [{ kind: 'notify' }] }] }
    const running = (config: Parameters<typeof checkTray>[1], pid?: number) =>
      checkTray({ ...good, pid }, config).find(({ name }) => name === 'running')
    const check = running({ webhooks: [webhook] })
    assert.equal(check?.status, 'warning')
    assert.match(check.detail, /what \/orders delivers to/)
    const others = ['/a', '/b', '/c'].map((path) => ({ ...webhook, path }))
    assert.match(
      running({ webhooks: [webhook, ...others] })?.detail ?? '',
      /what \/orders and 3 more deliver to/,
    )
    assert.equal(check.hint, 'doorward tray')
    assert.equal(running({ webhooks: [webhook] }, 5)?.status, 'ok')
    assert.equal(running({ webhooks: [{ ...webhook, enabled: false }] })?.status, 'skipped')
    assert.equal(
      running({ webhooks: [{ ...webhook, rules: [{ targets: [{ kind: 'log' }] }] }] })?.status,
      'skipped',
    )
  })

  it('does not advise to start it where there is no desktop', () => {
    const webhook = { path: '/orders', enabled: true, rules: [{ targets: [{ kind: 'notify' }] }] }
    const [, running] = checkTray(
      { ...good, hasDisplay: false, hasHost: false },
      { webhooks: [webhook] },
    )
    assert.match(running?.hint ?? '', /no desktop here: .*doorward events --follow$/)
  })

  it('never runs a changed program, and wants no desktop where there is none', () => {
    assert.equal(statusOf({ ...good, program: 'changed' }, 'program'), 'error')
    assert.equal(statusOf({ ...good, hasHost: false }, 'host'), 'warning')
    assert.equal(statusOf({ ...good, hasNotifications: false }, 'notifications'), 'warning')
    assert.equal(statusOf({ ...good, hasHost: undefined }, 'host'), 'skipped')
    assert.equal(statusOf({ ...good, hasLibrary: false }, 'library'), 'ok')
    assert.equal(statusOf({ ...good, hasLibrary: false, hasHost: false }, 'library'), 'warning')
    const noDisplay = { ...good, hasDisplay: false, hasHost: false }
    assert.equal(statusOf({ ...noDisplay, hasBus: false }, 'session'), 'skipped')
    assert.deepEqual(
      checkTray({ ...noDisplay, hasNotifications: false, hasLibrary: false })
        .map(({ name, status }) => `${name} ${status}`)
        .slice(2),
      ['session skipped'],
    )
    assert.equal(statusOf({ ...good, hasDisplay: false }, 'host'), 'ok')
  })
})

describe('doctor: several machines', () => {
  const gateway = gatewayFileSchema.parse({ queue: { engine: 'nats', role: 'receiver' } })
  const seenAt = '2026-01-02T03:04:05.000Z'
  const role = 'worker' as const
  const worker = { name: 'tower', role, version: '0.1.0', seenAt, agents: [] }
  const broker = { connected: true, server: 'nats.example:4222', version: '2.9.10', redelivered: 0 }
  const found = (more: object) =>
    checkMachines(
      gateway,
      statusWith({ version: '0.1.0', broker, machines: [worker], ...more }),
    ).map(({ name, status }) => [name, status])

  it('says nothing about a queue in memory', () => {
    assert.deepEqual(checkMachines(gatewayFileSchema.parse({}), statusWith()), [])
  })

  it('finds a broker that is away or too old, and a worker that is missing', () => {
    const good = [
      ['broker', 'ok'],
      ['machines', 'ok'],
    ]
    assert.deepEqual(found({}), good)
    assert.deepEqual(found({ broker: { ...broker, connected: false } }), [['broker', 'error']])
    assert.deepEqual(found({ broker: { ...broker, version: '2.8.4' } })[0], ['broker', 'error'])
    assert.deepEqual(found({ broker: { ...broker, problem: 'another key' } })[0], [
      'broker',
      'error',
    ])
    assert.deepEqual(found({ machines: [] })[1], ['machines', 'warning'])
    assert.deepEqual(found({ broker: undefined }), [['broker', 'warning']])
    assert.equal(checkMachines(gateway, undefined)[0]?.status, 'skipped')
  })

  it('finds another version, and a clock that is off', () => {
    const machines = [worker, { ...worker, name: 'old', version: '0.0.9', clockMs: -120_000 }]
    assert.deepEqual(found({ machines }).slice(2), [
      ['old', 'warning'],
      ['old', 'warning'],
    ])
  })
})
