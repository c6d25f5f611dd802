import assert from 'node:assert/strict'
import {
  kinds,
  kindsOr,
  linesOf,
  notDuration,
  notSize,
  refuses,
  twoAgents,
  webhook,
  webhookKeys,
} from '../../../support/daemon/config-files.ts'

describe('an unknown key', () => {
  refuses({
    'at the top of each file, with the nearest name': [
      {
        webhooks: 'webhooks: []\nwebhook: []\n',
        agents: `${twoAgents}agent: {}\n`,
        gateway: 'servr: {}\n',
      },
      'gateway.yaml:1:1 servr: unknown key (did you mean "server"?)',
      'agents.yaml:4:1 agent: unknown key (did you mean "agents"?)',
      'webhooks.yaml:2:1 webhook: unknown key (did you mean "webhooks"?)',
    ],
    'in a webhook': [
      { webhooks: webhook('    deliverto: log\n') },
      'webhooks.yaml:5:5 webhooks[0].deliverto: unknown key (did you mean "deliver_to"?)',
    ],
    'that is a word of the right ones': [
      { webhooks: 'webhooks:\n  - { path: /a, agent: echo, prompt: x, secrets: S, max: 1 }\n' },
      'webhooks.yaml:2:5 webhooks[0].prompt_template: missing',
      'webhooks.yaml:2:30 webhooks[0].prompt: unknown key (did you mean "prompt_template"?)',
      'webhooks.yaml:2:41 webhooks[0].secrets: unknown key (did you mean "secret_env" or "secret_encoding"?)',
      'webhooks.yaml:2:53 webhooks[0].max: unknown key (did you mean "max_attempts" or "max_value_length" or "max_runs"?)',
    ],
    'that is near none, with all there are': [
      { webhooks: webhook('    colour: red\n') },
      `webhooks.yaml:5:5 webhooks[0].colour: unknown key (${webhookKeys})`,
    ],
    'in an agent, by its kind': [
      {
        agents: `${twoAgents}  c: { kind: command, command: [a], comand: [a], timout: 3s }\n  d: { kind: echo, cwd: a }\n`,
      },
      'agents.yaml:4:37 agents.c.comand: unknown key (did you mean "command"?)',
      'agents.yaml:4:50 agents.c.timout: unknown key (did you mean "timeout"?)',
      'agents.yaml:5:20 agents.d.cwd: unknown key (known: kind, timeout, concurrency, output_limit, budget)',
    ],
    'that no longer exists, with what to do instead': [
      {
        gateway:
          'oauth: { login_timeout: 3m, refresh_ahead: 1h }\nworkspaces: { keep: 1d }\nproviders:\n  github: { callback_port: 8080 }\n',
        webhooks: `${webhook('    deliver_empty: true\n')}    rules: [{ name: a, deliver_empty: false }]\n`,
      },
      'gateway.yaml:1:10 oauth.login_timeout: this key no longer exists (remove it: a login waits for ten minutes)',
      'gateway.yaml:1:29 oauth.refresh_ahead: this key no longer exists (remove it: a token is renewed five minutes before it expires)',
      'gateway.yaml:2:15 workspaces.keep: this key no longer exists (remove it: a mirror that was not used for 30 days is removed; workspaces.max_size limits all of them)',
      'gateway.yaml:4:13 providers.github.callback_port: this key no longer exists (remove it, and register the port of oauth.callback_port (53174) at the provider)',
      'webhooks.yaml:5:5 webhooks[0].deliver_empty: this key no longer exists (remove it, and let the prompt ask for a sentence where there is nothing to say: an empty answer is delivered nowhere)',
      'webhooks.yaml:6:24 webhooks[0].rules[0].deliver_empty: this key no longer exists (remove it, and let the prompt ask for a sentence where there is nothing to say: an empty answer is delivered nowhere)',
    ],
    'in every section of gateway.yaml': [
      {
        gateway:
          'server: { prot: 1 }\noauth: { callback_prt: 3 }\nqueue: { maxbytes: 1mb }\nevents: { kep: 3 }\nproviders:\n  github: { clientid: x }\n',
      },
      'gateway.yaml:1:11 server.prot: unknown key (did you mean "port"?)',
      'gateway.yaml:2:10 oauth.callback_prt: unknown key (did you mean "callback_port"?)',
      'gateway.yaml:3:10 queue.maxbytes: unknown key (did you mean "max_bytes"?)',
      'gateway.yaml:4:11 events.kep: unknown key (did you mean "keep"?)',
      'gateway.yaml:6:13 providers.github.clientid: unknown key (did you mean "client_id"?)',
    ],
  })
})

describe('a value of the wrong kind', () => {
  refuses({
    'wrong types in a webhook': [
      {
        webhooks:
          'webhooks:\n  - path: 3\n    agent: [x]\n    prompt_template: { a: b }\n    filter: [1]\n    deliver_to: { a: 1 }\n    secret_env: 7\n    enabled: yes\n    signature_header: 5\n    signature_algo: md5\n    signature_prefix: 9\n',
      },
      'webhooks.yaml:2:5 webhooks[0].path: must be text',
      'webhooks.yaml:3:5 webhooks[0].agent: must be text',
      'webhooks.yaml:4:5 webhooks[0].prompt_template: must be text',
      'webhooks.yaml:5:5 webhooks[0].filter: must be a map',
      'webhooks.yaml:6:5 webhooks[0].deliver_to: must be text or a list',
      'webhooks.yaml:7:5 webhooks[0].secret_env: must be text or a list',
      'webhooks.yaml:8:5 webhooks[0].enabled: must be true or false',
      'webhooks.yaml:9:5 webhooks[0].signature_header: must be text',
      'webhooks.yaml:10:5 webhooks[0].signature_algo: must be sha256, sha1 or sha512',
      'webhooks.yaml:11:5 webhooks[0].signature_prefix: must be text',
    ],
    'keys without a value': [
      { webhooks: webhook('    secret_env:\n    enabled:\n  -\n'), gateway: 'server:\n' },
      'gateway.yaml:1:1 server: has no value, must be a map',
      'webhooks.yaml:5:5 webhooks[0].secret_env: has no value, must be text or a list',
      'webhooks.yaml:6:5 webhooks[0].enabled: has no value, must be true or false',
      'webhooks.yaml:7:4 webhooks[1]: has no value, must be a map',
    ],
    'wrong values in a filter': [
      { webhooks: webhook('    filter: { a: { b: c }, d: null, e: [], f: [{}], g: [null] }\n') },
      'webhooks.yaml:5:20 webhooks[0].filter.a.b: unknown key (known: is, not, in, not_in, glob, regex, contains, exists, above, below)',
      'webhooks.yaml:5:28 webhooks[0].filter.d: has no value, must be text, a number, true or false, a list or a map (write { exists: false } for null or a missing value)',
      'webhooks.yaml:5:37 webhooks[0].filter.e: must not be empty',
      'webhooks.yaml:5:48 webhooks[0].filter.f[0]: must be text, a number or true or false',
      'webhooks.yaml:5:57 webhooks[0].filter.g[0]: has no value, must be text, a number or true or false',
    ],
    'numbers that would be others': [
      { webhooks: webhook('    filter: { a: 9007199254740993, b: [-12345678901234567890] }\n') },
      'webhooks.yaml:5:15 webhooks[0].filter.a: the number is too large to be exact: put it in quotes',
      'webhooks.yaml:5:40 webhooks[0].filter.b[0]: the number is too large to be exact: put it in quotes',
    ],
    'numbers that are written in another way than they are compared': [
      {
        webhooks: webhook(
          "    filter: { v: 1.10, w: [1.0, '1.0', 2, -3.5], sha: 12e5, zip: 007, x: 0x1F, '5': 5 }\n",
        ),
      },
      "webhooks.yaml:5:15 webhooks[0].filter.v: YAML reads 1.10 as the number 1.1 (write '1.10' in quotes, or 1.1)",
      "webhooks.yaml:5:28 webhooks[0].filter.w[0]: YAML reads 1.0 as the number 1 (write '1.0' in quotes, or 1)",
      "webhooks.yaml:5:50 webhooks[0].filter.sha: YAML reads 12e5 as the number 1200000 (write '12e5' in quotes, or 1200000)",
      "webhooks.yaml:5:61 webhooks[0].filter.zip: YAML reads 007 as the number 7 (write '007' in quotes, or 7)",
      "webhooks.yaml:5:71 webhooks[0].filter.x: YAML reads 0x1F as the number 31 (write '0x1F' in quotes, or 31)",
    ],
    'a secret where its name should stand, without showing it': [
      { webhooks: webhook('    secret_env: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n') },
      'webhooks.yaml:5:5 webhooks[0].secret_env: this looks like a secret, not like the name of a variable: put NAME=... into .env, and the name here',
    ],
    'what cannot name a variable, without showing it': [
      { webhooks: webhook('    secret_env: [GOOD, "whsec_+/=", 3]\n') },
      'webhooks.yaml:5:24 webhooks[0].secret_env[1]: not the name of an environment variable',
      'webhooks.yaml:5:37 webhooks[0].secret_env[2]: must be text',
    ],
    'an empty prompt, or one of white space': [
      {
        webhooks: `${webhook('', '/a', 'echo', '""')}  - { path: /b, agent: echo, prompt_template: " \\n" }\n`,
      },
      'webhooks.yaml:4:5 webhooks[0].prompt_template: the prompt is empty',
      'webhooks.yaml:5:30 webhooks[1].prompt_template: the prompt is empty',
    ],
    'agents of no kind, an unknown kind and the wrong kind': [
      {
        agents:
          'agents:\n  a: { kind: ecko }\n  b: { kind: nothing }\n  c: {}\n  d: { kind: 3 }\n  e: echo\n  f:\n',
      },
      'agents.yaml:2:8 agents.a.kind: unknown kind "ecko" (did you mean "echo"?)',
      `agents.yaml:3:8 agents.b.kind: unknown kind "nothing" (one of ${kinds})`,
      `agents.yaml:4:3 agents.c.kind: missing, must be ${kindsOr}`,
      `agents.yaml:5:8 agents.d.kind: must be ${kindsOr}`,
      'agents.yaml:6:3 agents.e: must be a map',
      'agents.yaml:7:3 agents.f: has no value, must be a map',
    ],
    'commands that name no program': [
      {
        agents:
          'agents:\n  a: { kind: command }\n  b: { kind: command, command: ls -l }\n  c: { kind: command, command: [] }\n  d: { kind: command, command: [""] }\n  e: { kind: command, command: [1] }\n  f: { kind: command, command: [a], cwd: "" }\n',
      },
      'agents.yaml:2:3 agents.a.command: missing',
      'agents.yaml:3:23 agents.b.command: must be a list',
      'agents.yaml:4:23 agents.c.command: must not be empty',
      'agents.yaml:5:23 agents.d.command: the program has no name',
      'agents.yaml:6:33 agents.e.command[0]: must be text',
      'agents.yaml:7:37 agents.f.cwd: must not be empty',
    ],
    'variables that an agent is to be given, without a name': [
      {
        agents:
          'agents:\n  a: { kind: command, command: [a], env: { A: "env:", B: "env:A B", C: env, D: env:OK } }\n  b: { kind: http, url: "https://a.example", headers: { x-a: "env:", x-b: env:OK } }\n',
      },
      'agents.yaml:2:44 agents.a.env.A: env: is not followed by the name of an environment variable',
      'agents.yaml:2:55 agents.a.env.B: env: is not followed by the name of an environment variable',
      'agents.yaml:3:57 agents.b.headers.x-a: env: is not followed by the name of an environment variable',
    ],
    'names of agents and variables that cannot be': [
      {
        agents:
          'agents:\n  "a b": { kind: echo }\n  "": { kind: echo }\n  c: { kind: command, command: [a], env: { "A B": x, C: 3, D: } }\n',
      },
      'agents.yaml:2:3 agents["a b"]: not an agent name (letters, digits, - _ and ., with a letter or a digit first)',
      'agents.yaml:3:3 agents[""]: not an agent name (letters, digits, - _ and ., with a letter or a digit first)',
      'agents.yaml:4:44 agents.c.env["A B"]: not the name of an environment variable',
      'agents.yaml:4:54 agents.c.env.C: must be text',
      'agents.yaml:4:60 agents.c.env.D: has no value, must be text',
    ],
    durations: [
      {
        agents:
          'agents:\n  a: { kind: echo, timeout: 10 }\n  b: { kind: echo, timeout: 10 m }\n  c: { kind: echo, timeout: 0s }\n  d: { kind: echo, timeout: 366d }\n  e: { kind: echo, timeout: -1s }\n',
        gateway: 'queue: { drain_timeout: , lost_after: 1ms }\n',
      },
      `gateway.yaml:1:10 queue.drain_timeout: ${notDuration}`,
      'gateway.yaml:1:27 queue.lost_after: must be at least 1s',
      `agents.yaml:2:20 agents.a.timeout: ${notDuration}`,
      `agents.yaml:3:20 agents.b.timeout: ${notDuration}`,
      'agents.yaml:4:20 agents.c.timeout: must be between 1ms and 365d',
      'agents.yaml:5:20 agents.d.timeout: must be between 1ms and 365d',
      `agents.yaml:6:20 agents.e.timeout: ${notDuration}`,
    ],
    sizes: [
      {
        agents: `agents:\n  a: { kind: echo, output_limit: 1MB }\n  b: { kind: echo, output_limit: 0b }\n  c: { kind: echo, output_limit: ${'9'.repeat(400)}gb }\n`,
        gateway: 'server: { body_limit: 25 }\nqueue: { max_bytes: 1tb }\n',
      },
      `gateway.yaml:1:11 server.body_limit: ${notSize}`,
      `gateway.yaml:2:10 queue.max_bytes: ${notSize}`,
      `agents.yaml:2:20 agents.a.output_limit: ${notSize}`,
      'agents.yaml:3:20 agents.b.output_limit: must be between 1b and 1024gb',
      'agents.yaml:4:20 agents.c.output_limit: must be between 1b and 1024gb',
    ],
    numbers: [
      {
        agents:
          'agents:\n  a: { kind: echo, concurrency: 0 }\n  b: { kind: echo, concurrency: 65 }\n  c: { kind: echo, concurrency: 1.5 }\n  d: { kind: echo, concurrency: "2" }\n',
        gateway:
          'server: { port: 70000 }\noauth: { callback_port: -1 }\nqueue: { max_events: 0, concurrency: 257 }\nevents: { keep: .inf }\n',
      },
      'gateway.yaml:1:11 server.port: must be at most 65535',
      'gateway.yaml:2:10 oauth.callback_port: must be at least 0',
      'gateway.yaml:3:10 queue.max_events: must be at least 1',
      'gateway.yaml:3:25 queue.concurrency: must be at most 256',
      'gateway.yaml:4:11 events.keep: must be a number',
      'agents.yaml:2:20 agents.a.concurrency: must be at least 1',
      'agents.yaml:3:20 agents.b.concurrency: must be at most 64',
      'agents.yaml:4:20 agents.c.concurrency: must be a whole number',
      'agents.yaml:5:20 agents.d.concurrency: must be a number',
    ],
  })

  it('is never told in the words of a library', () => {
    const values = [
      'null',
      '3',
      '-1',
      '1e99',
      'x',
      '""',
      '[]',
      '[null]',
      '[[]]',
      '{}',
      '{ a: {} }',
      'true',
    ]
    const texts = (keys: readonly string[], line: (key: string, value: string) => string) =>
      keys.flatMap((key) => values.map((value) => line(key, value)))
    const all = [
      ...texts(
        webhookKeys.slice('known: '.length).split(', '),
        (key, value) => `webhooks:\n  - ${key}: ${value}\n`,
      ).map((webhooks) => ({ webhooks })),
      ...texts(
        ['kind', 'timeout', 'concurrency', 'output_limit', 'command', 'cwd', 'env'],
        (key, value) =>
          `agents:\n  a:\n    ${key}: ${value}\n${key === 'kind' ? '' : '    kind: command\n'}`,
      ).map((agents) => ({ agents })),
      ...texts(
        ['server', 'oauth', 'queue', 'events', 'providers'],
        (key, value) => `${key}: ${value}\n`,
      ).map((gateway) => ({ gateway })),
      ...texts(
        ['host', 'port', 'public_url', 'body_limit', 'allow_remote'],
        (key, value) => `server:\n  ${key}: ${value}\n`,
      ).map((gateway) => ({ gateway })),
      ...texts(
        ['issuer', 'token_endpoint', 'scopes', 'client_id', 'client_secret_env', 'redirect_host'],
        (key, value) => `providers:\n  x:\n    ${key}: ${value}\n`,
      ).map((gateway) => ({ gateway })),
    ]
    for (const files of all)
      for (const line of linesOf(files)) {
        assert.match(line, /^(gateway|agents|webhooks)\.yaml:[1-9]\d*:[1-9]\d* \S/)
        assert.doesNotMatch(
          line,
          /invalid|expected|received|too (small|big)|\b(string|array|object|record|undefined|null)\b|[A-Z]\w+ input/i,
          line,
        )
      }
  })
})
