import assert from 'node:assert/strict'
import { describeTests, valueConditions } from '../../../../shared/filter/conditions.ts'
import { execFileSync } from 'node:child_process'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError } from '../../../../shared/errors.ts'
import type { resolveHome } from '../../../../shared/home/home.ts'
import { ConfigError, loadConfig, formatProblem } from '../../../../shared/config/load.ts'
import { hmacScheme } from '../../../../shared/signatures/described.ts'
import { schemeNames } from '../../../../shared/signatures/presets.ts'
import {
  check,
  kinds,
  kindsOr,
  linesOf,
  refuses,
  twoAgents,
  requiredFields,
  webhook,
  webhookKeys,
} from '../../../support/daemon/config-files.ts'
import { temporaryHome } from '../../../support/temporary.ts'

describe('a configuration', () => {
  it('is refused with all that is wrong in all files, in the order of the places: of an entry first what is wrong in itself', () => {
    const files = {
      env: { DOORWARD_PORT: 'x' },
      gateway: 'servr: 1\nserver: { host: 0.0.0.0 }\n',
      agents: `${twoAgents}  a: { kind: x, timeout: 3 }\n`,
      webhooks:
        'webhooks:\n  - { path: /a, agent: eco, prompt_template: "{{evnt}}", enabled: 3 }\n  - { path: /a, agent: nobody, deliver_to: [lg], filter: { a..b: x } }\n  - { path: /health, colour: red }\n',
    }
    const lines = linesOf(files)
    assert.deepEqual(lines, [
      'gateway.yaml:1:1 servr: unknown key (did you mean "server"?)',
      `gateway.yaml:2:11 server.host: not one of 127.0.0.1, ::1, localhost (use a tunnel, or open webhooks to other machines with server.allow_remote: true)`,
      `agents.yaml:4:8 agents.a.kind: unknown kind "x" (one of ${kinds})`,
      'webhooks.yaml:2:58 webhooks[0].enabled: must be true or false',
      'webhooks.yaml:3:5 webhooks[1].prompt_template: missing',
      'webhooks.yaml:3:17 webhooks[1].agent: unknown agent "nobody" (known: echo, reviewer, a)',
      'webhooks.yaml:3:45 webhooks[1].deliver_to[0]: unknown target "lg" (did you mean "log"?)',
      'webhooks.yaml:3:60 webhooks[1].filter["a..b"]: path "a..b" cannot be read: paths are written like head.sha, commits[0].id, labels[*].name and labels["a.b"]',
      'webhooks.yaml:4:5 webhooks[2].agent: missing',
      'webhooks.yaml:4:5 webhooks[2].prompt_template: missing',
      'webhooks.yaml:4:7 webhooks[2].path: /health is reserved (use /webhook/health)',
      `webhooks.yaml:4:22 webhooks[2].colour: unknown key (${webhookKeys})`,
      'environment:1:1 DOORWARD_PORT: not a port: write a number from 0 to 65535',
    ])
    assert.deepEqual(linesOf(files), lines)
  })

  it('has the defaults of a webhook that are documented', () => {
    assert.deepEqual(check({ webhooks: webhook() }).webhooks, [
      {
        path: '/a',
        urlPaths: ['/a', '/webhook/a'],
        enabled: true,
        secretNames: [],
        verifyTokenNames: [],
        confirm: false,
        scheme: hmacScheme({
          header: 'x-hub-signature-256',
          algorithm: 'sha256',
          prefix: 'sha256=',
        }),
        dedupe: 'id',
        rateLimit: undefined,
        rules: [
          {
            name: undefined,
            on: undefined,
            paths: undefined,
            agentName: 'echo',
            agent: { kind: 'echo', timeout: 600_000, concurrency: 1, output_limit: 1024 ** 2 },
            prompt: { source: 'x', parts: ['x'] },
            values: { eventText: 'plain', maxValueLength: undefined },
            acceptsRisk: false,
            filter: [],
            workspace: undefined,
            context: [],
            contextLimit: 200 * 1024,
            targets: [],
            title: undefined,
            coalesce: undefined,
            update: false,
            checkName: undefined,
            publish: undefined,
            maxRuns: undefined,
          },
        ],
      },
    ])
  })

  refuses({
    'a signature_scheme that there is not': [
      { webhooks: webhook('    signature_scheme: githib\n') },
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: not one that is known (did you mean "github"?)',
    ],
    'fields of hmac beside another scheme': [
      {
        webhooks: webhook(
          '    signature_scheme: stripe\n    signature_header: X-Signature\n    signature_algo: sha256\n    signature_prefix: ""\n',
        ),
      },
      'webhooks.yaml:6:5 webhooks[0].signature_header: cannot be combined with signature_scheme stripe, which defines it (remove it, or write signature_scheme: hmac or public-key)',
      'webhooks.yaml:7:5 webhooks[0].signature_algo: cannot be combined with signature_scheme stripe, which defines it (remove it, or write signature_scheme: hmac)',
      'webhooks.yaml:8:5 webhooks[0].signature_prefix: cannot be combined with signature_scheme stripe, which defines it (remove it, or write signature_scheme: hmac or public-key)',
    ],
    'fields of one sender beside another': [
      {
        webhooks: webhook(
          '    signature_scheme: github\n    public_key_env: K\n    verify_token_env: T\n    audience: a\n    confirm: true\n',
        ),
      },
      'webhooks.yaml:6:5 webhooks[0].public_key_env: cannot be combined with signature_scheme github (it is for discord, sendgrid, telnyx, public-key)',
      'webhooks.yaml:7:5 webhooks[0].verify_token_env: cannot be combined with signature_scheme github (it is for meta, whatsapp, strava)',
      'webhooks.yaml:8:5 webhooks[0].audience: cannot be combined with signature_scheme github (it is for google-pubsub, aws-sns, oidc, github-actions, monday)',
      'webhooks.yaml:9:5 webhooks[0].confirm: cannot be combined with signature_scheme github (it is for asana, aws-sns)',
    ],
    'a key pair and an issuer of which too little is said': [
      { webhooks: webhook('    signature_scheme: public-key\n') },
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: public-key needs algorithm (write what the sender documents)',
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: public-key needs signature_header (write what the sender documents)',
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: public-key needs public_key_env (name the variable with the public key of the sender)',
    ],
    'an issuer by plain http or with a query': [
      {
        webhooks: webhook(
          '    signature_scheme: oidc\n    audience: a\n    issuer: http://token.example\n',
        ),
      },
      'webhooks.yaml:7:5 webhooks[0].issuer: not an issuer: an https address (http on this machine) without a query',
    ],
    'a token of any issuer': [
      { webhooks: webhook('    signature_scheme: oidc\n') },
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: oidc needs issuer (an issuer signs tokens for others, too: write whose they are, and whom they are for)',
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: oidc needs audience (an issuer signs tokens for others, too: write whose they are, and whom they are for)',
    ],
    'a secret where the sender has a key pair': [
      { webhooks: webhook('    signature_scheme: discord\n    secret_env: S\n') },
      'webhooks.yaml:6:5 webhooks[0].secret_env: discord signs with a key pair (name its public key in public_key_env)',
    ],
    'Amazon SNS without the topic': [
      { webhooks: webhook('    signature_scheme: aws-sns\n') },
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: aws-sns needs audience (anyone can have Amazon sign a message of another topic: write the ARN of yours)',
    ],
    'Pub/Sub without what tells one sender of Google from another': [
      { webhooks: webhook('    signature_scheme: google-pubsub\n    audience: a\n') },
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: google-pubsub needs service_account (anyone can have Google sign a token for another one: write what the subscription has)',
    ],
  })

  it('knows every scheme by its name, and svix as standard-webhooks', () => {
    for (const name of [...schemeNames, 'svix'] as const) {
      const lines = (requiredFields[name] ?? []).map((line) => `    ${line}\n`).join('')
      const entry = webhook(`    signature_scheme: ${name}\n${lines}`)
      const [given] = check({ webhooks: entry }).webhooks
      assert.equal(given?.scheme.name, name === 'svix' ? 'standard-webhooks' : name)
    }
  })

  it('takes the fields of hmac beside signature_scheme: hmac', () => {
    const [given] = check({
      webhooks: webhook('    signature_scheme: hmac\n    signature_header: X-A\n'),
    }).webhooks
    assert.equal(given?.scheme.forms[0]?.header, 'x-a')
  })

  it('keeps every field of a webhook that is given', () => {
    const [given] = check({
      webhooks: webhook(
        '    secret_env: [A, B]\n    signature_header: X-Signature\n    signature_algo: sha1\n    signature_prefix: ""\n    filter: { a.0.b: [1, true, x], c: 1.5 }\n    deliver_to: [none, log, "file:{{event.a}}.md"]\n    enabled: false\n',
      ),
    }).webhooks
    assert.deepEqual(given?.secretNames, ['A', 'B'])
    assert.equal(given?.scheme.name, 'hmac')
    assert.deepEqual(
      given?.scheme.forms.map(({ header, algorithm, prefix }) => [header, algorithm, prefix]),
      [['x-signature', 'sha1', '']],
    )
    assert.deepEqual(
      valueConditions(given?.rules[0]?.filter ?? []).map((condition) => [
        condition.path,
        describeTests(condition),
      ]),
      [
        [['event', 'a', '0', 'b'], '"1" or "true" or "x"'],
        [['event', 'c'], '"1.5"'],
      ],
    )
    assert.deepEqual(
      given?.rules[0]?.targets.map(({ text }) => text),
      ['log', 'file:{{event.a}}.md'],
    )
    assert.equal(given?.enabled, false)
  })

  const problemsOn = async (home: ReturnType<typeof resolveHome>): Promise<string[]> => {
    const error: unknown = await loadConfig(home, {}).then(
      () => assert.fail('it was taken'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof ConfigError)
    return error.problems.map((problem) => formatProblem(problem).replaceAll(home.config, ''))
  }

  it('is refused when its files are missing, folders or unreadable', async () => {
    const home = await temporaryHome()
    await rm(join(home.config, 'webhooks.yaml'))
    await rm(join(home.config, 'agents.yaml'))
    await rm(join(home.config, 'gateway.yaml'))
    await mkdir(join(home.config, 'agents.yaml'))
    await symlink('gateway.yaml', join(home.config, 'gateway.yaml'))
    assert.deepEqual(await problemsOn(home), [
      '/gateway.yaml:1:1 cannot be read: the symbolic link points to itself',
      '/agents.yaml:1:1 cannot be read: it is a folder',
      '/webhooks.yaml:1:1 no such file (doorward init writes a sample)',
    ])
  })

  it('is refused when the file of webhooks has nothing in it, as after a write that was cut off', async () => {
    const home = await temporaryHome()
    const file = join(home.config, 'webhooks.yaml')
    await writeFile(file, ' \n')
    assert.deepEqual(await problemsOn(home), [
      '/webhooks.yaml:1:1 the file is empty (for no webhooks, write webhooks: [])',
    ])
    for (const none of ['# none yet\n', 'webhooks: []\n']) {
      await writeFile(file, none)
      assert.deepEqual((await loadConfig(home, {})).webhooks, [])
    }
  })

  it('is refused when a file is a pipe, and nobody is waited for', async () => {
    if (process.platform === 'win32') return
    const home = await temporaryHome()
    await rm(join(home.config, 'agents.yaml'))
    execFileSync('mkfifo', [join(home.config, 'agents.yaml')])
    assert.deepEqual(await problemsOn(home), ['/agents.yaml:1:1 cannot be read: it is a pipe'])
  })

  it('is refused when a file is no UTF-8', async () => {
    const home = await temporaryHome({ agents: twoAgents })
    const text = 'webhooks:\n  - { path: /a, agent: echo, prompt_template: "é" }\n'
    const where = join(home.config, 'webhooks.yaml')
    await writeFile(where, text, 'latin1')
    await writeFile(join(home.config, 'gateway.yaml'), 'server: {}\n# \0\n')
    assert.deepEqual(await problemsOn(home), [
      '/gateway.yaml:1:1 the file is not UTF-8 (save it as UTF-8)',
      '/webhooks.yaml:1:1 the file is not UTF-8 (save it as UTF-8)',
    ])
    await writeFile(join(home.config, 'gateway.yaml'), '')
    // As Windows PowerShell writes it with >, and the same without its first two bytes.
    for (const utf16 of [`\ufeff${text}`, text]) {
      await writeFile(where, utf16, 'utf16le')
      assert.deepEqual(await problemsOn(home), [
        '/webhooks.yaml:1:1 the file is not UTF-8 (save it as UTF-8)',
      ])
    }
    await writeFile(where, `\ufeff${text}`)
    assert.equal((await loadConfig(home, {})).webhooks.length, 1)
  })

  it('names the files as they are, and the next step', async () => {
    const home = await temporaryHome({ agents: 'agents: []\n' })
    await assert.rejects(loadConfig(home, {}), (error: unknown) => {
      assert.ok(error instanceof DoorwardError)
      assert.equal(
        error.message,
        `the configuration cannot be used\n${join(home.config, 'agents.yaml')}:1:1 agents: must be a map`,
      )
      assert.equal(error.hint, 'fix it, then run: doorward config check')
      return true
    })
  })

  it('is read from a file with Windows line ends at the same places', async () => {
    const home = await temporaryHome()
    await writeFile(join(home.config, 'agents.yaml'), 'agents:\r\n  a:\r\n    knd: echo\r\n')
    assert.deepEqual(await problemsOn(home), [
      `/agents.yaml:2:3 agents.a.kind: missing, must be ${kindsOr}`,
    ])
  })
})
