import assert from 'node:assert/strict'
import {
  check,
  linesOf,
  notSecure,
  refuses,
  webhook,
} from '../../../support/daemon/config-files.ts'

describe('a token in the environment of an agent', () => {
  const agentWith = (value: string): string =>
    `agents:\n  echo: { kind: echo }\n  a:\n    kind: command\n    command: [x]\n    env:\n      TOKEN: ${value}\n`
  refuses({
    'of a provider that is mistyped': [
      { agents: agentWith('oauth:gihub') },
      'agents.yaml:7:7 agents.a.env.TOKEN: unknown provider "gihub" (did you mean "github"?)',
    ],
    'of no provider': [
      { agents: agentWith('"oauth:"') },
      'agents.yaml:7:7 agents.a.env.TOKEN: oauth: is not followed by a provider (known: atlassian, discord, dropbox, github, gitlab, google, linear, microsoft, notion, slack, spotify)',
    ],
  })

  it('may be of a built-in provider or of one in gateway.yaml', () => {
    assert.deepEqual(linesOf({ agents: agentWith('oauth:slack') }), [])
    assert.deepEqual(linesOf({ agents: agentWith('oauth:slack@work') }), [])
    const gateway = 'providers: { mine: { issuer: "https://id.example" } }\n'
    assert.deepEqual(linesOf({ agents: agentWith('oauth:mine'), gateway }), [])
  })
})

describe('an agent that doorward runs or asks by itself', () => {
  refuses({
    'tools that a program does not have, and network: off without a sandbox': [
      {
        agents:
          'agents:\n  a: { kind: llm, tools: read }\n  b: { kind: claude, sandbox: off, network: off }\n  c: { kind: command, command: [x], sandbox: off, network: off }\n',
      },
      'agents.yaml:2:19 agents.a.tools: llm has no tools of its own: name some in args, with -T',
      'agents.yaml:3:36 agents.b.network: network: off needs the sandbox: leave out sandbox: off',
      'agents.yaml:4:51 agents.c.network: network: off needs the sandbox: leave out sandbox: off',
    ],
    'networks that no sandbox could hold': [
      {
        agents: `agents:
  a: { kind: claude, sandbox: off, network: { allow: [example.com] } }
  b: { kind: command, command: [x], network: model }
  c: { kind: claude, network: { allow: ['http://example.com'] } }
  d: { kind: claude, network: { allow: ['169.254.169.254'] } }
  e: { kind: claude, network: some }
`,
      },
      'agents.yaml:2:36 agents.a.network: network: {allow: …} needs the sandbox: leave out sandbox: off',
      'agents.yaml:3:37 agents.b.network: doorward does not know the model of this program: network: { allow: [hosts] } names what it reaches',
      'agents.yaml:4:41 agents.c.network.allow[0]: write a host, with a port or without: example.com, *.example.com, localhost:8080',
      'agents.yaml:5:41 agents.d.network.allow[0]: no agent in a sandbox reaches the metadata of a machine',
      'agents.yaml:6:22 agents.e.network: must be open, model or off',
    ],
    'flags that would change what is read of a program': [
      {
        agents:
          'agents:\n  a: { kind: claude, args: [--output-format=text] }\n  b: { kind: gemini, args: [-o, text] }\n  c: { kind: codex, args: x, comand: [y] }\n',
      },
      'agents.yaml:2:22 agents.a.args: --output-format and --input-format must be left out: doorward sets the output format',
      'agents.yaml:3:22 agents.b.args: --output-format and -o must be left out: doorward sets the output format',
      'agents.yaml:4:21 agents.c.args: must be a list',
      'agents.yaml:4:30 agents.c.comand: unknown key (known: kind, args, tools, cwd, env, permissions, proxy_env, sandbox, network, limits, timeout, concurrency, output_limit, budget)',
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
      'agents.yaml:3:39 agents.b.headers.Host: doorward sets this header',
      'agents.yaml:3:48 agents.b.headers["b c"]: not a header name',
      'agents.yaml:3:58 agents.b.headers.e: not the value of a header',
      'agents.yaml:3:71 agents.b.answer_path: not a path of names with dots between them',
    ],
  })

  it('is fenced when it is a language model, unless the webhook says otherwise', () => {
    const valuesFor = (agent: string, more = '') => {
      const agents = `agents: { echo: { ${agent} } }\n`
      return check({ agents, webhooks: webhook(more) }).webhooks[0]?.rules[0]?.values
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
