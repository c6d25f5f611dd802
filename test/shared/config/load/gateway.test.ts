import assert from 'node:assert/strict'
import { check, linesOf, notSecure, refuses } from '../../../support/daemon/config-files.ts'

describe('gateway.yaml', () => {
  const ours = '127.0.0.1, ::1, localhost'
  const notABase =
    'not the beginning of a URL: webhook paths are added to it, so it must not have a user name, ? or #'
  const notForLogins = 'choose another: a login waits there for the browser'
  refuses({
    'providers that cannot be': [
      {
        gateway:
          'providers:\n  a/b: {}\n  Git: {}\n  x: { issuer: "http://example.com" }\n  y: { issuer: "ftp://127.0.0.1", token_endpoint: 3, scopes: repo user }\n  z: { token_endpoint: "http://127.0.0.1.evil.com/", scopes: ["a b"], redirect_host: 0.0.0.0 }\n',
      },
      'gateway.yaml:2:3 providers["a/b"]: not a provider name (a-z, 0-9, - and _)',
      'gateway.yaml:3:3 providers.Git: not a provider name (a-z, 0-9, - and _)',
      `gateway.yaml:4:8 providers.x.issuer: ${notSecure}`,
      `gateway.yaml:5:8 providers.y.issuer: ${notSecure}`,
      'gateway.yaml:5:35 providers.y.token_endpoint: must be text',
      'gateway.yaml:5:54 providers.y.scopes: must be a list',
      `gateway.yaml:6:8 providers.z.token_endpoint: ${notSecure}`,
      'gateway.yaml:6:63 providers.z.scopes[0]: not a scope',
      'gateway.yaml:6:71 providers.z.redirect_host: must be 127.0.0.1 or localhost',
    ],
    'an account as a provider': [
      { gateway: 'providers: { github@work: {} }\n' },
      'gateway.yaml:1:14 providers["github@work"]: not a provider name: an account needs no entry, only doorward oauth login --as NAME',
    ],
    'a target with a bad login, or with two tokens': [
      {
        gateway:
          'targets:\n  github: { login: github@Work }\n  slack: { login: slack@a, token_env: T }\n  email: { login: google@a, smtp_url_env: S, from: a@example.com }\n',
      },
      'gateway.yaml:2:13 targets.github.login: not the name of a login: write github, or github@work',
      'gateway.yaml:3:12 targets.slack.login: not used beside token_env: remove one of them',
      'gateway.yaml:4:12 targets.email.login: not used beside smtp_url_env: remove one of them',
    ],
    'an address without https': [
      { gateway: 'server: { public_url: "http://example.com" }\n' },
      `gateway.yaml:1:11 server.public_url: ${notSecure}`,
    ],
    'an address to which no path can be added': [
      { gateway: 'server: { public_url: "https://a.example/y?z" }\n' },
      `gateway.yaml:1:11 server.public_url: ${notABase}`,
    ],
    'a port for webhooks that is the main one': [
      { gateway: 'server: { port: 4000, public_port: 4000 }\n' },
      'gateway.yaml:1:23 server.public_port: the same as server.port (choose another: it serves webhooks only)',
    ],
    'ports of callbacks that the daemon has itself': [
      {
        gateway: 'server: { port: 4000, public_port: 4001 }\noauth: { callback_port: 4000 }\n',
      },
      `gateway.yaml:2:10 oauth.callback_port: the same as server.port (${notForLogins})`,
    ],
    'the default port of callbacks for the daemon': [
      { gateway: 'server: { port: 53174 }\n' },
      `gateway.yaml:1:1 oauth.callback_port: the same as server.port (${notForLogins})`,
    ],
    'a DOORWARD_PORT that others have': [
      {
        gateway: 'server: { port: 1, public_port: 4000 }\noauth: { callback_port: 4000 }\n',
        env: { DOORWARD_PORT: '4000' },
      },
      'gateway.yaml:1:20 server.public_port: the same as DOORWARD_PORT (choose another: it serves webhooks only)',
      `gateway.yaml:2:10 oauth.callback_port: the same as DOORWARD_PORT (${notForLogins})`,
    ],
  })

  it('takes http on a loopback address, and https anywhere', () => {
    for (const url of [
      'http://127.0.0.1:3',
      'http://localhost/x',
      'http://[::1]:9',
      'https://a.example',
    ])
      assert.deepEqual(linesOf({ gateway: `providers: { x: { issuer: "${url}" } }\n` }), [])
  })

  it('takes an address with a path of its own, and none with what would follow or stand before it', () => {
    const lines = (url: string) => linesOf({ gateway: `server: { public_url: "${url}" }\n` })
    for (const url of ['https://a.example', 'https://a.example:8443/y/', 'http://127.0.0.1:3/@'])
      assert.deepEqual(lines(url), [])
    for (const rest of ['a.example?', 'a.example/#x', 'me@a.example', 'me:canary@a.example'])
      assert.deepEqual(lines(`https://${rest}`), [
        `gateway.yaml:1:11 server.public_url: ${notABase}`,
      ])
    assert.deepEqual(lines('x?y'), [`gateway.yaml:1:11 server.public_url: ${notSecure}`])
  })

  for (const host of [
    '0.0.0.0',
    '::',
    '192.168.1.1',
    'example.com',
    '127.0.0.1.evil.com',
    '127.999.1.1',
    '127.0.0.2',
  ])
    it(`refuses to listen on ${host}, where others or not our clients reach it`, () =>
      assert.deepEqual(linesOf({ gateway: `server: { host: "${host}" }\n` }), [
        `gateway.yaml:1:11 server.host: not one of ${ours} (use a tunnel, or open webhooks to other machines with server.allow_remote: true)`,
      ]))

  it('listens elsewhere only when told, and then on loopback too', () => {
    const remote = (host: string) =>
      linesOf({ gateway: `server: { host: "${host}", allow_remote: true }\n` })
    for (const host of ['0.0.0.0', '::', '127.0.0.1', 'localhost'])
      assert.deepEqual(remote(host), [])
    assert.deepEqual(remote('192.168.1.1'), [
      `gateway.yaml:1:11 server.host: not one of 0.0.0.0, ::, ${ours} (use 0.0.0.0 for all addresses)`,
    ])
  })

  for (const value of ['abc', '70000', '-1', '1.5', ' 80', '0x50', '123456'])
    it(`refuses DOORWARD_PORT=${value}`, () =>
      assert.deepEqual(linesOf({ env: { DOORWARD_PORT: value } }), [
        'environment:1:1 DOORWARD_PORT: not a port: write a number from 0 to 65535',
      ]))

  it('takes any free port as often as it likes, and what DOORWARD_PORT has put aside', () => {
    const free = 'server: { port: 0, public_port: 0 }\noauth: { callback_port: 0 }\n'
    assert.deepEqual(linesOf({ gateway: free }), [])
    const same = 'server: { port: 4000 }\noauth: { callback_port: 4000 }\n'
    assert.deepEqual(linesOf({ gateway: same, env: { DOORWARD_PORT: '0' } }), [])
  })

  it('is overridden by DOORWARD_PORT, unless that is empty', () => {
    const port = (value: string) =>
      check({ gateway: 'server: { port: 4000 }\n', env: { DOORWARD_PORT: value } }).gateway.server
        .port
    assert.deepEqual(['0', '65535', ''].map(port), [0, 65_535, 4000])
  })

  it('has the defaults that are documented', () => {
    assert.deepEqual(check({}).gateway, {
      server: { host: '127.0.0.1', port: 18_789, body_limit: 25 * 1024 ** 2, allow_remote: false },
      oauth: { callback_port: 53_174 },
      queue: {
        max_events: 1000,
        max_bytes: 256 * 1024 ** 2,
        concurrency: 4,
        drain_timeout: 30_000,
        engine: 'memory',
        role: 'both',
        servers_env: 'NATS_URL',
        key_env: 'DOORWARD_QUEUE_KEY',
        lost_after: 60_000,
      },
      events: { keep: 200, history: { keep: 30 * 86_400_000, contents: 'none' } },
      tokens: { store: 'file' },
      sessions: { store: 'memory' },
      workspaces: { max_size: 10 * 1024 ** 3 },
      providers: {},
      targets: {
        slack: {},
        telegram: {},
        jira: {},
        linear: {},
        discord: {},
        email: {},
        github: {},
        gitlab: {},
        http: {},
      },
    })
  })
})
