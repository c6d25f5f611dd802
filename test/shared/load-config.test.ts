import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DoorwardError } from '../../shared/errors.ts'
import { homeAt } from '../../shared/home.ts'
import {
  type Config,
  ConfigError,
  checkConfig,
  loadConfig,
  problemLine,
} from '../../shared/load-config.ts'
import { hmacScheme, schemeNames } from '../../shared/signature-schemes.ts'
import { packageFolder } from '../../shared/version.ts'
import { readYaml } from '../../shared/yaml-file.ts'
import { temporaryHome } from '../support/temporary.ts'

type Files = {
  readonly gateway?: string
  readonly agents?: string
  readonly webhooks?: string
  readonly env?: NodeJS.ProcessEnv
}

const twoAgents = 'agents:\n  echo: { kind: echo }\n  reviewer: { kind: echo }\n'

const check = ({ gateway = '', agents = twoAgents, webhooks = '', env = {} }: Files): Config =>
  checkConfig(
    readYaml('gateway.yaml', gateway),
    readYaml('agents.yaml', agents),
    readYaml('webhooks.yaml', webhooks),
    env,
  )

/** The lines a person would read. */
const linesOf = (files: Files): string[] => {
  try {
    check(files)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    assert.equal(error.code, 'config-invalid')
    return error.problems.map(problemLine)
  }
}

/** One definition with these lines after its three required ones. */
const webhook = (more = '', path = '/a', agent = 'echo', prompt = 'x'): string =>
  `webhooks:\n  - path: ${path}\n    agent: ${agent}\n    prompt_template: ${prompt}\n${more}`

const refuses = (table: Readonly<Record<string, readonly [Files, ...string[]]>>) => {
  for (const [what, [files, ...lines]] of Object.entries(table))
    it(`refuses ${what}`, () => assert.deepEqual(linesOf(files), lines))
}

const webhookKeys =
  'known: path, agent, prompt_template, secret_env, signature_scheme, signature_header, signature_algo, signature_prefix, filter, deliver_to, dedupe, delivery_id_header, rate_limit, event_text, max_value_length, accept_risk, enabled'
const kinds = 'echo, command, claude, codex, gemini, opencode, llm, openai, http'
const kindsOr = kinds.replace(', http', ' or http')
const notAPath =
  'not a URL path: it starts with / and has no space, %, ?, #, empty part or part that starts with a dot'
const notDuration = 'not a duration: write it like 500ms, 30s, 10m, 2h or 7d'
const notSize = 'not a size: write it like 512kb, 25mb or 1gb'
const notSecure = 'not an https URL (http is accepted for a loopback address only)'

describe('a configuration file that is not good YAML', () => {
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefghi'
      .split('')
      .map(
        (name, at) => `${name}: &${name} [${`*${'abcdefgh'[at]},`.repeat(8)}*${'abcdefgh'[at]}]`,
      ),
  ].join('\n')

  refuses({
    'a tab as indentation': [
      { webhooks: 'webhooks:\n\t- path: /a\n' },
      'webhooks.yaml:2:1 a tab cannot indent, use spaces',
    ],
    'a quote that is never closed': [
      { webhooks: 'webhooks:\n  - path: "/a\n    agent: echo\n' },
      'webhooks.yaml:4:1 a text that begins with " has no end',
    ],
    'a key that is there twice': [
      { webhooks: webhook('    agent: echo\n') },
      'webhooks.yaml:5:5 the key agent is there twice',
    ],
    'an agent that is there twice': [
      { agents: `${twoAgents}  echo: { kind: echo }\n` },
      'agents.yaml:4:3 the key echo is there twice',
    ],
    'a key that begins further left than those beside it': [
      { webhooks: 'webhooks:\n  - path: /a\n  agent: echo\n  prompt_template: x\n' },
      'webhooks.yaml:3:1 this line is not indented like those it belongs to',
      'webhooks.yaml:4:1 this line is not indented like those it belongs to',
    ],
    'an entry that begins further left than the one before, once': [
      { webhooks: `${webhook()} - path: /b\n   agent: echo\n   prompt_template: x\n` },
      'webhooks.yaml:5:1 this line is not indented like those it belongs to',
    ],
    'a prompt that is not indented below its key': [
      { webhooks: webhook('    hi there\n', '/a', 'echo', '|') },
      'webhooks.yaml:5:5 not of the form "key: value" (a space follows the colon; a text of more lines is indented below its key)',
    ],
    'a colon without a space': [
      { webhooks: 'webhooks:[]\n' },
      'webhooks.yaml:1:1 must be a map (it begins with webhooks:)',
    ],
    'a colon in a text without quotes': [
      { webhooks: webhook('', '/a', 'echo', 'Summary: x') },
      'webhooks.yaml:4:22 a text with ": " in it needs quotes',
    ],
    'a text that begins with a character of YAML': [
      { webhooks: webhook('', '/a', 'echo', '@here look') },
      'webhooks.yaml:4:22 a text that begins with @ needs quotes',
    ],
    'a template without quotes': [
      { webhooks: webhook('', '/a', 'echo', '{{event.number}}') },
      'webhooks.yaml:4:23 a text that begins with {{ needs quotes',
    ],
    'a list that is not closed': [
      { webhooks: webhook('    deliver_to: [log, none\n    dedupe: off\n') },
      'webhooks.yaml:6:5 a ] is missing before this',
    ],
    'a quote inside of quotes': [
      { webhooks: webhook('', '/a', 'echo', "'it's new'") },
      'webhooks.yaml:4:26 the value before this has ended; is a quote misplaced?',
    ],
    'aliases that multiply (a billion laughs)': [
      { webhooks: bomb },
      'webhooks.yaml:1:1 aliases expand to more than 100 values, write the values out',
    ],
    'an alias of nothing': [
      { webhooks: 'webhooks: *nothing\n' },
      'webhooks.yaml:1:11 there is no anchor &nothing',
    ],
    'a tag of its own': [
      { webhooks: 'webhooks: !mine []\n' },
      'webhooks.yaml:1:11 unresolved tag: !mine',
    ],
    'a tag that would make a function': [
      { webhooks: webhook('', '!!js/function "x"') },
      'webhooks.yaml:2:11 unresolved tag: tag:yaml.org,2002:js/function',
    ],
    'several documents in one file': [
      { webhooks: 'webhooks: []\n---\nwebhooks: []\n' },
      'webhooks.yaml:2:1 a second document begins here, only one can be read',
    ],
    'an alias as a key, which could stand for any name': [
      {
        agents: `${twoAgents}  &x b: { kind: echo }\n`,
        webhooks: webhook('    filter: { a: &p __proto__, *p : x }\n'),
      },
      'webhooks.yaml:5:32 a key must be plain text',
    ],
    'a list as a key': [
      { webhooks: webhook('    ? [a, b]\n    : x\n') },
      'webhooks.yaml:5:7 a key must be plain text',
    ],
    'a list where the whole should be a map': [
      { webhooks: '- path: /a\n', agents: 'hello\n', gateway: '3\n' },
      'gateway.yaml:1:1 must be a map (known: server, oauth, queue, events, providers, targets)',
      'agents.yaml:1:1 must be a map (it begins with agents:)',
      'webhooks.yaml:1:1 must be a map (it begins with webhooks:)',
    ],
  })

  it('is never a crash, however deep it is nested', () => {
    for (const depth of [100, 500, 700, 800, 2000, 20_000]) {
      const lines = linesOf({ webhooks: `webhooks: ${'['.repeat(depth)}${']'.repeat(depth)}\n` })
      assert.match(
        lines[0] ?? '',
        /^webhooks\.yaml:1:\d+ (webhooks\[0\]: must be a map|nested too deeply)$/,
      )
    }
  })

  for (const [where, files] of Object.entries({
    'top of gateway.yaml': { gateway: '__proto__: {}\n' },
    'name of a provider': { gateway: 'providers:\n  __proto__: { client_id: x }\n' },
    'name of an agent': { agents: `${twoAgents}  __proto__: { kind: echo }\n` },
    'variable of an agent': {
      agents: `${twoAgents}  c: { kind: command, command: [x], env: { __proto__: x } }\n`,
    },
    'key of a webhook': { webhooks: webhook('    "__proto__": x\n') },
    'condition of a filter': { webhooks: webhook("    filter: { '__proto__': x }\n") },
    'explicit key': { webhooks: webhook('    ? __proto__\n    : x\n') },
    'key with a tag': { webhooks: webhook('    !!str __proto__ : x\n') },
    'key deep inside': { webhooks: webhook('    filter: { a: [{ __proto__: x }] }\n') },
  }))
    it(`refuses __proto__ as a ${where}`, () => {
      const lines = linesOf(files)
      assert.equal(lines.length, 1)
      assert.match(lines[0] ?? '', /^\w+\.yaml:\d+:\d+ __proto__: this name is not allowed$/)
    })

  it('may be empty or hold comments alone: then it has no entries and every default', () => {
    for (const text of ['', '# nothing yet\n', '---\n', '\uFEFF', '\n\n']) {
      const config = check({ gateway: text, agents: text, webhooks: text })
      assert.deepEqual([config.webhooks, config.agents.size], [[], 0])
      assert.equal(config.gateway.server.port, 18_789)
    }
  })

  it('takes durations of each unit, up to a year', () => {
    const { agents, gateway } = check({
      agents: `${twoAgents}  c: { kind: echo, timeout: 365d }\n`,
      gateway:
        'oauth: { login_timeout: 2h, refresh_ahead: 30d }\nqueue: { drain_timeout: 500ms }\n',
    })
    const { oauth, queue } = gateway
    assert.deepEqual(
      [agents.get('c')?.timeout, oauth.login_timeout, oauth.refresh_ahead, queue.drain_timeout],
      [31_536_000_000, 7_200_000, 2_592_000_000, 500],
    )
  })

  it('may use an alias for a value', () => {
    const text = `${webhook('', '/a', '&agent echo')}  - path: /b\n    agent: *agent\n    prompt_template: y\n`
    assert.deepEqual(
      check({ webhooks: text }).webhooks.map(({ agentName }) => agentName),
      ['echo', 'echo'],
    )
  })
})

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
      'agents.yaml:5:20 agents.d.cwd: unknown key (known: kind, timeout, concurrency, output_limit)',
    ],
    'in every section of gateway.yaml': [
      {
        gateway:
          'server: { prot: 1 }\noauth: { login_timout: 3m }\nqueue: { maxbytes: 1mb }\nevents: { kep: 3 }\nproviders:\n  github: { clientid: x }\n',
      },
      'gateway.yaml:1:11 server.prot: unknown key (did you mean "port"?)',
      'gateway.yaml:2:10 oauth.login_timout: unknown key (did you mean "login_timeout"?)',
      'gateway.yaml:3:10 queue.maxbytes: unknown key (did you mean "max_bytes"?)',
      'gateway.yaml:4:11 events.kep: unknown key (did you mean "keep"?)',
      'gateway.yaml:6:13 providers.github.clientid: unknown key (did you mean "client_id"?)',
    ],
  })
})

describe('a value of the wrong kind', () => {
  refuses({
    'a webhook with nothing in it': [
      { webhooks: 'webhooks:\n  - {}\n' },
      'webhooks.yaml:2:5 webhooks[0].path: missing',
      'webhooks.yaml:2:5 webhooks[0].agent: missing',
      'webhooks.yaml:2:5 webhooks[0].prompt_template: missing',
    ],
    'files without their one key': [
      { webhooks: '{}\n', agents: '{}\n' },
      'agents.yaml:1:1 agents: missing',
      'webhooks.yaml:1:1 webhooks: missing',
    ],
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
      'webhooks.yaml:10:5 webhooks[0].signature_algo: must be sha256 or sha1',
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
      'webhooks.yaml:5:15 webhooks[0].filter.a: must be text, a number, true or false or a list',
      'webhooks.yaml:5:28 webhooks[0].filter.d: has no value, must be text, a number, true or false or a list',
      'webhooks.yaml:5:37 webhooks[0].filter.e: must not be empty',
      'webhooks.yaml:5:48 webhooks[0].filter.f[0]: must be text, a number or true or false',
      'webhooks.yaml:5:57 webhooks[0].filter.g[0]: has no value, must be text, a number or true or false',
    ],
    'empty lists': [
      { webhooks: webhook('    deliver_to: []\n    secret_env: []\n') },
      'webhooks.yaml:5:5 webhooks[0].deliver_to: must not be empty',
      'webhooks.yaml:6:5 webhooks[0].secret_env: must not be empty',
    ],
    'a secret where its name should stand, without showing it': [
      { webhooks: webhook('    secret_env: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n') },
      'webhooks.yaml:5:5 webhooks[0].secret_env: this looks like a secret, not the name of one: put NAME=... into .env, and that name here',
    ],
    'what cannot name a variable, without showing it': [
      { webhooks: webhook('    secret_env: [GOOD, "whsec_+/=", 3]\n') },
      'webhooks.yaml:5:24 webhooks[0].secret_env[1]: not the name of an environment variable',
      'webhooks.yaml:5:37 webhooks[0].secret_env[2]: must be text',
    ],
    'a header with a space': [
      { webhooks: webhook('    signature_header: x hub\n') },
      'webhooks.yaml:5:5 webhooks[0].signature_header: not a header name',
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
      'agents.yaml:2:3 agents["a b"]: not an agent name',
      'agents.yaml:3:3 agents[""]: not an agent name',
      'agents.yaml:4:44 agents.c.env["A B"]: not the name of an environment variable',
      'agents.yaml:4:54 agents.c.env.C: must be text',
      'agents.yaml:4:60 agents.c.env.D: has no value, must be text',
    ],
    durations: [
      {
        agents:
          'agents:\n  a: { kind: echo, timeout: 10 }\n  b: { kind: echo, timeout: 10 m }\n  c: { kind: echo, timeout: 0s }\n  d: { kind: echo, timeout: 366d }\n  e: { kind: echo, timeout: -1s }\n',
        gateway: 'oauth: { login_timeout: }\nqueue: { drain_timeout: 1w }\n',
      },
      `gateway.yaml:1:10 oauth.login_timeout: ${notDuration}`,
      `gateway.yaml:2:10 queue.drain_timeout: ${notDuration}`,
      `agents.yaml:2:20 agents.a.timeout: ${notDuration}`,
      `agents.yaml:3:20 agents.b.timeout: ${notDuration}`,
      'agents.yaml:4:20 agents.c.timeout: must lie between 1ms and 365d',
      'agents.yaml:5:20 agents.d.timeout: must lie between 1ms and 365d',
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
      'agents.yaml:3:20 agents.b.output_limit: must lie between 1b and 1024gb',
      'agents.yaml:4:20 agents.c.output_limit: must lie between 1b and 1024gb',
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

describe('the path of a webhook', () => {
  const served = (path: string) => linesOf({ webhooks: webhook('', JSON.stringify(path)) })

  for (const path of [
    '/a b',
    '/a?x',
    '/a#x',
    '/a%20b',
    '/a/../b',
    '/..',
    '/a/./b',
    '//a',
    '/a//b',
    'a',
    '',
    '/',
    '/é',
    '/a\\b',
    '/a\n',
    '/.env',
  ])
    it(`is refused as ${JSON.stringify(path)}`, () =>
      assert.deepEqual(served(path), [`webhooks.yaml:2:5 webhooks[0].path: ${notAPath}`]))

  for (const name of ['oauth', 'events', 'webhooks', 'status', 'metrics', 'health', 'daemon'])
    it(`is refused where /${name} belongs to the daemon`, () => {
      for (const path of [`/${name}`, `/${name}/`, `/${name}/more`])
        assert.deepEqual(served(path), [
          `webhooks.yaml:2:5 webhooks[0].path: /${name} is reserved (use /webhook${path})`,
        ])
      assert.deepEqual(served(`/webhook/${name}`), [])
      assert.deepEqual(served(`/${name}-mine`), [])
    })

  it('is refused when another definition is served there, under either address', () => {
    const webhooks = ['/a', '/a', '/webhook/a', '/webhook/b', '/b', '/a/', '/A']
      .map((path) => `  - { path: ${path}, agent: echo, prompt_template: x }\n`)
      .join('')
    assert.deepEqual(linesOf({ webhooks: `webhooks:\n${webhooks}` }), [
      'webhooks.yaml:3:7 webhooks[1].path: path /a is defined twice (first in line 2)',
      'webhooks.yaml:4:7 webhooks[2].path: two definitions would be served at /webhook/a (the other is path /a in line 2)',
      'webhooks.yaml:6:7 webhooks[4].path: two definitions would be served at /webhook/b (the other is path /webhook/b in line 5)',
    ])
  })

  it('is served under /webhook too, unless it begins so', () => {
    const webhooks = `${webhook('', '/a/b/')}  - { path: /webhook/c, agent: echo, prompt_template: x }\n`
    assert.deepEqual(
      check({ webhooks }).webhooks.map(({ urlPaths }) => urlPaths),
      [['/a/b/', '/webhook/a/b/'], ['/webhook/c']],
    )
  })
})

describe('a name in a webhook definition', () => {
  refuses({
    'an agent that is not there, with the nearest': [
      { webhooks: webhook('', '/a', 'eco') },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)',
    ],
    'an agent that is near none, with all there are': [
      { webhooks: webhook('', '/a', 'toString') },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "toString" (known: echo, reviewer)',
    ],
    'an agent where there are none': [
      { agents: 'agents: {}\n', webhooks: webhook() },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "echo" (known: none)',
    ],
    'no agent of a file that cannot be read': [
      { agents: 'agents:\n\t- x\n', webhooks: webhook() },
      'agents.yaml:2:1 a tab cannot indent, use spaces',
    ],
    'no agent that is there but wrong in itself': [
      { agents: 'agents:\n  echo: { kind: eco }\n', webhooks: webhook() },
      'agents.yaml:2:11 agents.echo.kind: unknown kind "eco" (did you mean "echo"?)',
    ],
    'a target that is not there, with all there are': [
      {
        webhooks: webhook(
          '    deliver_to: [log, notify, "file:a/", "file:{{evnt.x}}", "file:a\\0b"]\n',
        ),
      },
      'webhooks.yaml:5:23 webhooks[0].deliver_to[1]: unknown target "notify" (one of none, log, notify:desktop, file:<path>, slack:…, telegram:…, discord:…, email:…, github:…, http:…)',
      'webhooks.yaml:5:31 webhooks[0].deliver_to[2]: target "file:a/" names no file',
      'webhooks.yaml:5:42 webhooks[0].deliver_to[3]: {{evnt.x}}: only {{event}} and {{event.<path>}} can be used',
      'webhooks.yaml:5:61 webhooks[0].deliver_to[4]: the path of the file has a NUL character in it',
    ],
    'a target alone': [
      { webhooks: webhook('    deliver_to: notfy:desktop\n') },
      'webhooks.yaml:5:5 webhooks[0].deliver_to: unknown target "notfy:desktop" (did you mean "notify:desktop"?)',
    ],
    'every unknown name of a template': [
      {
        webhooks: webhook(
          '',
          '/a',
          'echo',
          '"{{event.a}} {{evnt.x}} {{event..y}} {{evnt.x}} {{event.a.__proto__}}"',
        ),
      },
      'webhooks.yaml:4:5 webhooks[0].prompt_template: {{evnt.x}}: only {{event}} and {{event.<path>}} can be used; {{event..y}}: path ".y" has an empty name between its dots; {{event.a.__proto__}}: the name "__proto__" cannot be used in a path',
    ],
    'conditions that lead out of the data, or nowhere': [
      {
        webhooks: webhook(
          '    filter: { constructor: x, a.prototype.b: x, a.__proto__: x, a..b: x, .a: x, "a.": x, "": x }\n',
        ),
      },
      'webhooks.yaml:5:15 webhooks[0].filter.constructor: the name "constructor" cannot be used in a path',
      'webhooks.yaml:5:31 webhooks[0].filter["a.prototype.b"]: the name "prototype" cannot be used in a path',
      'webhooks.yaml:5:49 webhooks[0].filter["a.__proto__"]: the name "__proto__" cannot be used in a path',
      'webhooks.yaml:5:65 webhooks[0].filter["a..b"]: path "a..b" has an empty name between its dots',
      'webhooks.yaml:5:74 webhooks[0].filter[".a"]: path ".a" has an empty name between its dots',
      'webhooks.yaml:5:81 webhooks[0].filter["a."]: path "a." has an empty name between its dots',
      'webhooks.yaml:5:90 webhooks[0].filter[""]: the path is empty',
    ],
  })
})

describe('a token in the environment of an agent', () => {
  const agentWith = (value: string): string =>
    `agents:\n  echo: { kind: echo }\n  a:\n    kind: command\n    command: [x]\n    env:\n      TOKEN: ${value}\n`
  refuses({
    'of a provider that is mistyped': [
      { agents: agentWith('oauth:gihub') },
      'agents.yaml:7:7 agents.a.env.TOKEN: there is no provider "gihub" (did you mean "github"?)',
    ],
    'of no provider': [
      { agents: agentWith('"oauth:"') },
      'agents.yaml:7:7 agents.a.env.TOKEN: there is no provider without a name (known: github, google, slack)',
    ],
  })

  it('may be of a built-in provider or of one in gateway.yaml', () => {
    assert.deepEqual(linesOf({ agents: agentWith('oauth:slack') }), [])
    const gateway = 'providers: { mine: { issuer: "https://id.example" } }\n'
    assert.deepEqual(linesOf({ agents: agentWith('oauth:mine'), gateway }), [])
  })
})

describe('an agent that doorward runs or asks by itself', () => {
  refuses({
    'flags that would change what is read of a program': [
      {
        agents:
          'agents:\n  a: { kind: claude, args: [--output-format=text] }\n  b: { kind: gemini, args: [-o, text] }\n  c: { kind: codex, args: x, comand: [y] }\n',
      },
      'agents.yaml:2:22 agents.a.args: --output-format and --input-format must be left out: doorward sets what it reads',
      'agents.yaml:3:22 agents.b.args: --output-format and -o must be left out: doorward sets what it reads',
      'agents.yaml:4:21 agents.c.args: must be a list',
      'agents.yaml:4:30 agents.c.comand: unknown key (known: kind, args, cwd, env, timeout, concurrency, output_limit)',
    ],
    'addresses, headers and paths that cannot be': [
      {
        agents:
          'agents:\n  a: { kind: openai, base_url: "http://example.com/v1", api_key_env: "a b" }\n  b: { kind: http, url: x, headers: { Host: a, "b c": d, e: "f\\ng" }, answer_path: "a..b" }\n',
      },
      'agents.yaml:2:3 agents.a.model: missing',
      `agents.yaml:2:22 agents.a.base_url: ${notSecure}`,
      'agents.yaml:2:57 agents.a.api_key_env: not the name of an environment variable',
      `agents.yaml:3:20 agents.b.url: ${notSecure}`,
      'agents.yaml:3:39 agents.b.headers.Host: this header is set by itself',
      'agents.yaml:3:48 agents.b.headers["b c"]: not a header name',
      'agents.yaml:3:58 agents.b.headers.e: not the value of a header',
      'agents.yaml:3:71 agents.b.answer_path: not a path of names with dots between them',
    ],
  })

  it('is fenced when it is a language model, unless the webhook says otherwise', () => {
    const valuesFor = (agent: string, more = '') => {
      const agents = `agents: { echo: { ${agent} } }\n`
      return check({ agents, webhooks: webhook(more) }).webhooks[0]?.values
    }
    for (const kind of ['claude', 'codex', 'gemini', 'opencode', 'llm'])
      assert.deepEqual(valuesFor(`kind: ${kind}`), { eventText: 'fenced', maxValueLength: 4000 })
    const openai = 'kind: openai, base_url: "https://a.example", model: m'
    assert.deepEqual(valuesFor(openai), { eventText: 'fenced', maxValueLength: 4000 })
    for (const agent of [
      'kind: echo',
      'kind: command, command: [x]',
      'kind: http, url: "https://a.example"',
    ])
      assert.deepEqual(valuesFor(agent), { eventText: 'plain', maxValueLength: undefined })
    const given = '    event_text: plain\n    max_value_length: 9\n'
    assert.deepEqual(valuesFor('kind: claude', given), { eventText: 'plain', maxValueLength: 9 })
    const fencedOnly = '    event_text: fenced\n'
    assert.deepEqual(valuesFor('kind: echo', fencedOnly), {
      eventText: 'fenced',
      maxValueLength: 4000,
    })
  })
})

describe('gateway.yaml', () => {
  const ours = '127.0.0.1, ::1, localhost'
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
    'an address without https': [
      { gateway: 'server: { public_url: "http://example.com" }\n' },
      `gateway.yaml:1:11 server.public_url: ${notSecure}`,
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
        `gateway.yaml:1:11 server.host: not one of ${ours} (use a tunnel, or let others reach webhooks with server.allow_remote: true)`,
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

  it('is overridden by DOORWARD_PORT, unless that is empty', () => {
    const port = (value: string) =>
      check({ gateway: 'server: { port: 4000 }\n', env: { DOORWARD_PORT: value } }).gateway.server
        .port
    assert.deepEqual(['0', '65535', ''].map(port), [0, 65_535, 4000])
  })

  it('has the defaults that are documented', () => {
    assert.deepEqual(check({}).gateway, {
      server: { host: '127.0.0.1', port: 18_789, body_limit: 25 * 1024 ** 2, allow_remote: false },
      oauth: { callback_port: 53_174, login_timeout: 600_000, refresh_ahead: 300_000 },
      queue: {
        max_events: 1000,
        max_bytes: 256 * 1024 ** 2,
        concurrency: 4,
        drain_timeout: 30_000,
      },
      events: { keep: 200 },
      providers: {},
      targets: { slack: {}, telegram: {}, discord: {}, email: {}, github: {}, http: {} },
    })
  })
})

describe('a configuration', () => {
  it('is refused with all that is wrong in all files, in the order of the places', () => {
    const files = {
      env: { DOORWARD_PORT: 'x' },
      gateway: 'servr: 1\nserver: { host: 0.0.0.0, port: x }\n',
      agents: `${twoAgents}  a: { kind: x, timeout: 3 }\n`,
      webhooks:
        'webhooks:\n  - { path: /a, agent: eco, prompt_template: "{{evnt}}", enabled: 3 }\n  - { path: /a, agent: nobody, deliver_to: [lg], filter: { constructor: x } }\n  - { path: /health, colour: red }\n',
    }
    const lines = linesOf(files)
    assert.deepEqual(lines, [
      'gateway.yaml:1:1 servr: unknown key (did you mean "server"?)',
      `gateway.yaml:2:11 server.host: not one of 127.0.0.1, ::1, localhost (use a tunnel, or let others reach webhooks with server.allow_remote: true)`,
      'gateway.yaml:2:26 server.port: must be a number',
      `agents.yaml:4:8 agents.a.kind: unknown kind "x" (one of ${kinds})`,
      'webhooks.yaml:2:17 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)',
      'webhooks.yaml:2:29 webhooks[0].prompt_template: {{evnt}}: only {{event}} and {{event.<path>}} can be used',
      'webhooks.yaml:2:58 webhooks[0].enabled: must be true or false',
      'webhooks.yaml:3:5 webhooks[1].prompt_template: missing',
      'webhooks.yaml:3:7 webhooks[1].path: path /a is defined twice (first in line 2)',
      'webhooks.yaml:3:17 webhooks[1].agent: unknown agent "nobody" (known: echo, reviewer, a)',
      'webhooks.yaml:3:45 webhooks[1].deliver_to[0]: unknown target "lg" (did you mean "log"?)',
      'webhooks.yaml:3:60 webhooks[1].filter.constructor: the name "constructor" cannot be used in a path',
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
        agentName: 'echo',
        agent: { kind: 'echo', timeout: 600_000, concurrency: 1, output_limit: 1024 ** 2 },
        prompt: { source: 'x', parts: ['x'] },
        values: { eventText: 'plain', maxValueLength: undefined },
        acceptsRisk: false,
        secretNames: [],
        scheme: hmacScheme({
          header: 'x-hub-signature-256',
          algorithm: 'sha256',
          prefix: 'sha256=',
        }),
        filter: [],
        targets: [],
        dedupe: 'id',
        rateLimit: undefined,
      },
    ])
  })

  refuses({
    'a signature_scheme that there is not': [
      { webhooks: webhook('    signature_scheme: githib\n') },
      'webhooks.yaml:5:5 webhooks[0].signature_scheme: must be hmac, github, stripe, slack, standard-webhooks, gitlab, shopify, linear, sentry or svix (did you mean "github"?)',
    ],
    'fields of hmac beside another scheme': [
      {
        webhooks: webhook(
          '    signature_scheme: stripe\n    signature_header: X-Signature\n    signature_algo: sha256\n    signature_prefix: ""\n',
        ),
      },
      'webhooks.yaml:6:5 webhooks[0].signature_header: does not go with signature_scheme stripe, which has its own (remove it, or write signature_scheme: hmac)',
      'webhooks.yaml:7:5 webhooks[0].signature_algo: does not go with signature_scheme stripe, which has its own (remove it, or write signature_scheme: hmac)',
      'webhooks.yaml:8:5 webhooks[0].signature_prefix: does not go with signature_scheme stripe, which has its own (remove it, or write signature_scheme: hmac)',
    ],
  })

  it('knows every scheme by its name, and svix as standard-webhooks', () => {
    for (const name of [...schemeNames, 'svix'] as const) {
      const [given] = check({ webhooks: webhook(`    signature_scheme: ${name}\n`) }).webhooks
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
    assert.deepEqual(given?.filter, [
      { text: 'a.0.b', path: ['a', '0', 'b'], expected: ['1', 'true', 'x'] },
      { text: 'c', path: ['c'], expected: ['1.5'] },
    ])
    assert.deepEqual(
      given?.targets.map(({ text }) => text),
      ['log', 'file:{{event.a}}.md'],
    )
    assert.equal(given?.enabled, false)
  })

  const problemsOn = async (home: ReturnType<typeof homeAt>): Promise<string[]> => {
    const error: unknown = await loadConfig(home, {}).then(
      () => assert.fail('it was taken'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof ConfigError)
    return error.problems.map((problem) => problemLine(problem).replaceAll(home.config, ''))
  }

  it('is refused when its files are missing, folders or unreadable', async () => {
    const home = await temporaryHome()
    await rm(join(home.config, 'webhooks.yaml'))
    await rm(join(home.config, 'agents.yaml'))
    await rm(join(home.config, 'gateway.yaml'))
    await mkdir(join(home.config, 'agents.yaml'))
    await symlink('gateway.yaml', join(home.config, 'gateway.yaml'))
    assert.deepEqual(await problemsOn(home), [
      '/gateway.yaml:1:1 cannot be read: the link leads back to itself',
      '/agents.yaml:1:1 cannot be read: it is a folder',
      '/webhooks.yaml:1:1 there is no such file (doorward init writes a sample)',
    ])
  })

  it('is refused when a file is a pipe, and nobody is waited for', async () => {
    if (process.platform === 'win32') return
    const home = await temporaryHome()
    await rm(join(home.config, 'agents.yaml'))
    execFileSync('mkfifo', [join(home.config, 'agents.yaml')])
    assert.deepEqual(await problemsOn(home), ['/agents.yaml:1:1 cannot be read: it is a pipe'])
  })

  it('names the files as they are, and the next step', async () => {
    const home = await temporaryHome({ agents: 'agents: []\n' })
    await assert.rejects(loadConfig(home, {}), (error: unknown) => {
      assert.ok(error instanceof DoorwardError)
      assert.equal(
        error.message,
        `the configuration cannot be used\n${join(home.config, 'agents.yaml')}:1:1 agents: must be a map`,
      )
      assert.equal(error.hint, 'mend it, then run: doorward config check')
      return true
    })
  })

  it('of the package, the documented sample, can be used as it is', async () => {
    const home = homeAt(fileURLToPath(packageFolder))
    const config = await loadConfig(home, {})
    assert.deepEqual(
      config.webhooks.map(({ path, agentName, secretNames }) => [path, agentName, secretNames]),
      [['/webhook/github', 'echo', ['GITHUB_WEBHOOK_SECRET']]],
    )
    assert.deepEqual([...config.agents.keys()], ['echo'])
    assert.deepEqual(config.gateway, check({}).gateway)
  })

  it('is read from a file with Windows line ends at the same places', async () => {
    const home = await temporaryHome()
    await writeFile(join(home.config, 'agents.yaml'), 'agents:\r\n  a:\r\n    knd: echo\r\n')
    assert.deepEqual(await problemsOn(home), [
      `/agents.yaml:2:3 agents.a.kind: missing, must be ${kindsOr}`,
    ])
  })
})
