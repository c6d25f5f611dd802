import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { makeReply, deliverWith, resolveTargets } from '../support/servers/deliver.ts'
import { type TargetServer, json, startTargetServer } from '../support/servers/target-server.ts'
import { temporaryFolder } from '../support/temporary.ts'

/** Answers of an agent that a payload has talked into something: headers, mentions, links, markup. */
const answers = [
  'x\r\nX-Injected: yes\r\n\r\nGET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n',
  '"},"channel":"#general","x":{"',
  '","allowed_mentions":{"parse":["everyone"]},"content":"',
  '@everyone @here <!channel> <!here> <!subteam^S1> <@U0123456> <@&1> @octocat @acme/team',
  '[click](javascript:alert(1)) ![x](https://evil.example/p.png) <https://evil.example|bank>',
  '<script>alert(1)</script><img src=x onerror=alert(1)>',
  '<!-- doorward:evt_0123456789abcdef01:1 x -->',
  '```\n</details>\n# head\n---\n| a | b |',
  '\u001b]0;owned\u0007\u009b2J\u202eevil\u0000',
  '{{event.a}} ${HOME} $(id) `id` %s %n',
] as const

const secret = `whsec_${Buffer.from('a secret of 24 bytes, ok').toString('base64')}`

/** The fields that hold the answer, or depend on it. */
const words = new Set([
  'markdown_text',
  'text',
  'entities',
  'content',
  'body',
  'external_id',
  'output',
  'variables',
])

describe('an answer that is made to reach further', () => {
  let server: TargetServer
  beforeEach(async () => {
    const data = { commentCreate: { comment: { id: '1' } } }
    const made = { ok: true, id: '1', result: { message_id: 1 }, data }
    server = await startTargetServer((response, recorded, request) =>
      // A list of earlier reviews, which is empty.
      json(200, recorded.method === 'GET' ? [] : made)(response, recorded, request),
    )
  })
  afterEach(() => server.close())

  const deliverTo = async (target: string, text: string, homeFolder = '/nowhere') => {
    const { origin } = server
    const { deliver } = deliverWith(
      {
        slack: { api_url: `${origin}/slack` },
        telegram: { api_url: origin, token_env: 'BOT' },
        discord: { ops: { url_env: 'OPS' } },
        github: { api_url: `${origin}/github` },
        gitlab: { api_url: `${origin}/gitlab` },
        jira: { api_url: origin, email: 'me@example.com', token_env: 'BOT' },
        linear: { api_url: origin },
        http: { archive: { url: `${origin}/archive`, secret_env: 'HOOK' } },
      },
      {
        env: { BOT: '123:AAE-token', OPS: `${origin}/api/webhooks/1/token`, HOOK: secret },
        tokens: { slack: ['xoxp'], github: ['gho'], gitlab: ['glo'], linear: ['lin'] },
        homeFolder,
      },
    )
    return deliver(resolveTargets([target], { a: text }), makeReply(text))
  }

  /** What of a request does not depend on the answer that it carries. */
  const frameOf = () =>
    server.requests.map(({ method, path, headers, fields }) => ({
      method,
      path,
      names: Object.keys(headers).sort(),
      host: headers.host,
      authorization: headers.authorization,
      fields: Object.entries(fields)
        .filter(([name]) => !words.has(name))
        .map(([name, value]) => [name, name === 'data' || name === 'timestamp' ? '' : value]),
    }))

  for (const target of [
    'slack:#alerts',
    'telegram:42',
    'discord:ops',
    'slack:C012/1700000000.000100',
    'github:acme/door#7',
    'github-review:acme/door#7',
    `github-check:acme/door@${'a'.repeat(40)}`,
    'gitlab:acme/door!7',
    'gitlab-review:acme/door!7',
    'jira:PROJ-7',
    'linear:ENG-7',
    'http:archive',
  ])
    it(`changes nothing of the request to ${target} but the words in it`, async () => {
      await deliverTo(target, 'an answer')
      const usual = frameOf()
      assert.equal(usual.filter(({ method }) => method !== 'GET').length, 1)
      for (const text of answers) {
        server.requests.length = 0
        const [result] = await deliverTo(target, text)
        assert.equal(result?.state, 'done', text)
        assert.deepEqual(frameOf(), usual, text)
        const said = JSON.stringify(server.requests.at(-1)?.fields)
        if (target.startsWith('slack')) assert.doesNotMatch(said, /<(!\w|@)/, text)
        if (target.startsWith('git')) assert.doesNotMatch(said, /(^|[^\w`])@\w/, text)
        if (target.startsWith('discord')) assert.match(said, /"allowed_mentions":\{"parse":\[\]\}/)
        if (target !== 'http:archive')
          assert.doesNotMatch(said, /\\u001b|\\u0000|\u009b|\u202e/, text)
      }
    })

  it('reaches no other entry, address or host when an event names the target', async () => {
    const names = [...answers, '../x', 'ops/../x', 'ops?x', 'a b', '']
    for (const [target, texts] of [
      ['discord:{{event.a}}', [...names, '__proto__', 'constructor']],
      ['slack:#{{event.a}}', names],
      ['slack:C012/{{event.a}}', names],
      ['telegram:{{event.a}}', names],
      ['gitlab:{{event.a}}', names],
      ['github-review:acme/{{event.a}}', names],
      ['github-check:acme/door@{{event.a}}', names],
      ['gitlab-review:{{event.a}}', names],
      ['pull-request:acme/{{event.a}}@main', names.filter((name) => !/^[\w.-]+$/.test(name))],
      ['gitlab:acme/{{event.a}}!7', names.filter((name) => !/^[\w.-]+$/.test(name))],
    ] as const)
      for (const text of texts)
        for (const { state } of await deliverTo(target, text)) assert.equal(state, 'failed', text)
    assert.deepEqual(server.requests, [])
  })

  it('writes into no other file, and forges no mark of another event', async () => {
    const folder = await temporaryFolder()
    for (const text of answers) await deliverTo('file:out/answers.md', text, folder)
    const written = await readFile(join(folder, 'out', 'answers.md'), 'utf8')
    assert.equal(written.split('## 2026-01-01T00:00:00.000Z /github\n').length - 1, answers.length)
    for (const target of ['file:out/{{event.a}}.md', 'file:{{event.a}}'])
      for (const text of [answers[0], '../x', '.env', 'run', '/etc/x', 'config', '..\\x'])
        for (const { state, detail } of await deliverTo(target, text, folder))
          if (!(target.startsWith('file:out') && /^[.\w]+$/.test(text)))
            assert.equal(state, 'failed', `${target} ${text} ${detail}`)
  })
})
