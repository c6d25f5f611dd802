import assert from 'node:assert/strict'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { ConfigError, checkConfig, formatProblem } from '../../../shared/config/load.ts'
import { parseSecretUrl, parseSmtpServer } from '../../../shared/targets/secrets.ts'
import { readYaml } from '../../../shared/config/yaml.ts'

const load = (deliverTo: string, targets: string, env: Record<string, string> = {}) =>
  checkConfig(
    readYaml('gateway.yaml', targets === '' ? '' : `targets:\n${targets}`),
    readYaml('agents.yaml', 'agents: { echo: { kind: echo } }\n'),
    readYaml(
      'webhooks.yaml',
      `webhooks:\n  - { path: /a, agent: echo, secret_env: S, prompt_template: x, deliver_to: ${deliverTo} }\n`,
    ),
    env,
  )

const problems = (deliverTo: string, targets: string): string[] => {
  try {
    load(deliverTo, targets)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.problems
      .map(formatProblem)
      .map((line) => line.replace(/^(\w+)\.yaml:\d+:\d+ /, ''))
  }
}

describe('targets in gateway.yaml', () => {
  it('may be left out where a login is enough', () => {
    for (const target of ['"slack:#a"', '"github:a/b#1"', '"gitlab:a/b!1"', '"email:a@b.example"'])
      assert.deepEqual(problems(target, ''), [])
  })

  for (const [name, deliverTo, targets, ...wanted] of [
    [
      'an entry that is not there, with the nearest',
      '[log, "discord:opps", http:other]',
      '  discord: { ops: { url_env: A } }\n',
      'webhooks[0].deliver_to[1]: unknown discord target "opps" (did you mean "ops"?)',
      'webhooks[0].deliver_to[2]: unknown http target "other" (define it under targets.http.other in gateway.yaml)',
    ],
    [
      'a name that every object has',
      '"discord:constructor"',
      '  discord: { ops: { url_env: A } }\n',
      'webhooks[0].deliver_to: unknown discord target "constructor" (known: ops)',
    ],
    [
      'Telegram without a bot',
      '"telegram:1"',
      '',
      'webhooks[0].deliver_to: targets.telegram.token_env is missing in gateway.yaml (name the variable with the token of your bot)',
    ],
    [
      'a chat of my own that is not named',
      '"telegram:@me"',
      '  telegram: { token_env: BOT }\n',
      'webhooks[0].deliver_to: targets.telegram.me is missing in gateway.yaml (write the number of your own chat)',
    ],
    [
      'mail by SMTP without a sender, and one that is none',
      'log',
      '  email: { smtp_url_env: SMTP }\n',
      'targets.email.from: missing: mail by SMTP needs a sender',
    ],
    [
      'a sender that could be two',
      'log',
      '  email: { from: "a@b.example, c@d.example" }\n',
      'targets.email.from: not one mail address: write me@example.com or Name <me@example.com>',
    ],
    [
      'an API without TLS beyond this machine',
      'log',
      '  slack: { api_url: "http://slack.example" }\n',
      'targets.slack.api_url: not an https URL (http is accepted for a loopback address only)',
    ],
    [
      'an unknown kind and an unknown key, with the nearest',
      'log',
      '  slak: {}\n  github: { token_envs: A }\n',
      'targets.slak: unknown key (did you mean "slack"?)',
      'targets.github.token_envs: unknown key (did you mean "token_env"?)',
    ],
    [
      'a receiver without an address or with a password in it, and headers that are ours',
      'log',
      '  http:\n    a: { url: "ftp://x", secret_env: A }\n    b: { url: "https://u:p@x/", secret_env: A }\n    c: { url: "https://x/", secret_env: A, headers: { Webhook-Id: x } }\n',
      'targets.http.a.url: not an http or https URL without a user name',
      'targets.http.b.url: not an http or https URL without a user name',
      'targets.http.c.headers.Webhook-Id: doorward sets this header',
    ],
    [
      'a chat that is none',
      'log',
      '  telegram: { me: "x y" }\n',
      'targets.telegram.me: not a chat: write its number, or @name',
    ],
  ] as const)
    it(`cannot have ${name}`, () => assert.deepEqual(problems(deliverTo, targets), wanted))

  it('is none of the files of doorward itself, under the home that is known', () => {
    const files = (...names: string[]) => {
      try {
        checkConfig(
          readYaml('gateway.yaml', 'server: ['),
          readYaml('agents.yaml', 'agents: { echo: { kind: echo } }\n'),
          readYaml(
            'webhooks.yaml',
            `webhooks:\n  - path: /a\n    agent: echo\n    prompt_template: x\n    deliver_to:\n${names.map((name) => `      - "file:${name}"\n`).join('')}`,
          ),
          {},
          '/home/me/.doorward',
        )
        return []
      } catch (error) {
        assert.ok(error instanceof ConfigError)
        return error.problems.filter(({ file }) => file === 'webhooks.yaml').map(formatProblem)
      }
    }
    assert.deepEqual(files('.env'), [
      "webhooks.yaml:6:9 webhooks[0].deliver_to[0]: one of doorward's own files, which answers must not overwrite (choose another path: file:answers.md)",
    ])
    const refused = [
      'config/agents.yaml',
      'run',
      'x/../tokens/a',
      '/home/me/.doorward/.ENV',
      'config/{{event.x}}.yaml',
      'logs/daemon.{{event.x}}',
    ]
    assert.deepEqual(
      files(...refused).map((line) => line.split(' ', 1)[0]),
      refused.map((_, place) => `webhooks.yaml:${6 + place}:9`),
    )
    assert.deepEqual(
      files('.env.md', 'reviews/.env', '/config/a', '{{event.x}}/a.md', 'logs/a.md', '~/run'),
      [],
    )
  })

  it('takes the number of a chat as it is written', () => {
    const { gateway } = load('log', '  telegram: { me: -100123, token_env: A }\n')
    assert.equal(gateway.targets.telegram.me, '-100123')
  })

  const http = '  http: { a: { url: "http://192.168.1.2/x", secret_env: HOOK } }\n'
  const all = `  slack: { token_env: SLACK }\n  discord: { ops: { url_env: OPS }, b: { url_env: B } }\n  email: { smtp_url_env: SMTP, from: a@b.example }\n${http}`
  const warned = (deliverTo: string, env: Record<string, string>) =>
    collectWarnings(load(deliverTo, all), { S: 'x', ...env }).map(
      ({ code, detail }) => `${code} ${detail.split(';', 1)[0]}`,
    )

  it('is warned about where a variable is unset, or holds something else', () => {
    const plain =
      'target-not-encrypted target http:a: it uses http: answers can be read on the network'
    assert.deepEqual(warned('log', {}), [plain])
    assert.deepEqual(
      warned('["slack:#a", "slack:#b", "discord:ops", "email:a@b.example", http:a]', {}),
      [
        'target-secret-unset target slack: SLACK is unset or empty',
        'target-secret-unset target discord:ops: OPS is unset or empty',
        'target-secret-unset target email: SMTP is unset or empty',
        'target-secret-unset target http:a: HOOK is unset or empty',
        plain,
      ],
    )
    const wrong = warned('["discord:{{event.x}}", "email:a@b.example", http:a]', {
      OPS: 'canary',
      B: 'https://discord.com/api/webhooks/1/x',
      SMTP: 'canary',
      HOOK: 'canary!',
    })
    assert.deepEqual(
      wrong.map((line) => line.split(':', 2).join(':')),
      [
        'target-secret-wrong target discord:ops',
        'target-secret-wrong target email: SMTP is not smtps',
        'target-secret-wrong target http:a',
        'target-not-encrypted target http:a',
      ],
    )
    assert.doesNotMatch(wrong.join('\n'), /canary/)
  })
})

describe('the URL of an incoming webhook', () => {
  it('belongs into .env', () => {
    const warned = (url: string) => {
      const targets = `  http: { chat: { url: '${url}', sign: false } }\n`
      return collectWarnings(load('log', targets), { S: 'x' }).map(({ code }) => code)
    }
    for (const url of [
      'https://hooks.slack.com/services/T0/B0/x',
      'https://discord.com/api/webhooks/1/x',
      'https://acme.webhook.office.com/webhookb2/x',
      'https://prod-1.westeurope.logic.azure.com:443/workflows/x?sp=y&sig=z',
      'https://chat.example.com/hooks/abcdefghijklmnopqrstuvwxyz',
    ])
      assert.deepEqual(warned(url), ['target-url-secret'], url)
    for (const url of ['https://ntfy.sh/', 'https://example.com/hooks/github'])
      assert.deepEqual(warned(url), [], url)
  })
})

describe('what the variables of targets hold', () => {
  it('is the URL of a mail server', () => {
    assert.deepEqual(parseSmtpServer(' smtps://me%40x:p%3Aw@Mail.example.com\n'), {
      host: 'Mail.example.com',
      port: 465,
      isTls: true,
      isLoopback: false,
      login: { user: 'me@x', password: 'p:w' },
    })
    assert.deepEqual(parseSmtpServer('smtp://127.0.0.1:2525/'), {
      host: '127.0.0.1',
      port: 2525,
      isTls: false,
      isLoopback: true,
    })
    assert.equal(parseSmtpServer('smtp://[::1]:80')?.host, '::1')
    assert.equal(parseSmtpServer('smtp://mail.example.com:80')?.port, 80)
    for (const text of [
      '',
      'smtp://',
      'smtp:mail',
      'http://a',
      'smtp://a?x=1',
      'smtp://a#b',
      'smtp://a b',
    ])
      assert.equal(parseSmtpServer(text), undefined, text)
  })

  it('is the URL of a webhook of Discord', () => {
    assert.ok(parseSecretUrl(' https://discord.com/api/webhooks/1/x\n'))
    assert.ok(parseSecretUrl('http://127.0.0.1:5/api/webhooks/1/x'))
    for (const text of [
      '',
      'x',
      'http://discord.com/api/webhooks/1/x',
      'https://u:p@discord.com/',
      'file:///x',
    ])
      assert.equal(parseSecretUrl(text), undefined, text)
  })

  it('is warned about for each target that names the variable, in a header too', () => {
    const entry = (headers: string) => `{ url: "https://a.example", secret_env: SHARED${headers} }`
    const targets = `  discord: { ops: { url_env: SHARED } }
  http:
    a: ${entry(', headers: { authorization: "env:AUTH", accept: text/plain }')}
    b: ${entry('')}
`
    const deliverTo = '["discord:ops", "http:a", "http:b"]'
    const config = load(deliverTo, targets)
    const warned = (env: Record<string, string>) =>
      collectWarnings(config, { S: 'x', ...env }).map(({ detail }) => detail.split(';', 1)[0])
    assert.deepEqual(warned({}), [
      'target discord:ops: SHARED is unset or empty',
      'target http:a: SHARED is unset or empty',
      'target http:a: AUTH is unset or empty',
      'target http:b: SHARED is unset or empty',
    ])
    const key = `whsec_${Buffer.alloc(24).toString('base64')}`
    assert.deepEqual(warned({ SHARED: key, AUTH: 'two\nlines' }), [
      'target discord:ops: SHARED is not the https URL of a webhook',
      'target http:a: AUTH is not the value of a header: one line of ASCII',
    ])
    assert.deepEqual(
      warned({ SHARED: 'https://discord.com/api/webhooks/1/x', AUTH: 'x' }).length,
      2,
    )
  })
})
