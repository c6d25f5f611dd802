import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { EventRecord } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import {
  type GithubAppServer,
  startGithubAppServer,
} from '../../support/servers/github-app-server.ts'
import { makeBot } from '../../support/servers/make-bot.ts'
import { type ModelServer, startModelServer } from '../../support/servers/model-server.ts'
import {
  type PullRequestScene,
  reviewOf,
  startPullRequest,
} from '../../support/servers/pull-request.ts'

describe('a bot that reviews', () => {
  let apps: GithubAppServer
  let scene: PullRequestScene
  let model: ModelServer
  let daemon: RunningDaemon

  before(async () => {
    apps = await startGithubAppServer()
    scene = await startPullRequest(
      (given) => apps.minted.some(({ token }) => token === given),
      {},
      apps,
    )
    model = await startModelServer()
    daemon = await startDaemon({
      gateway: scene.gateway.replace('github: {', `github: { api_url: "${apps.apiUrl}",`),
      agents: `agents: { model: { kind: openai, base_url: "${model.origin}/v1", model: m } }\n`,
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    scene.close()
    model.close()
    apps.close()
  })

  const doorward = async (...words: string[]) => {
    const { code, stdout, stderr } = await run(words, { home: daemon.home })
    assert.equal(code, 0, stdout + stderr)
    return stdout + stderr
  }
  const mintedOf = (token: string) => apps.minted.find((one) => one.token === token)

  it('gets the rule of webhook add, in the entry of its deliveries', async () => {
    await makeBot({ github: apps, daemon }, ['--name', 'reviewer'], ['acme/door'])
    // The page of the stand-in is on a port of its own; its API is that of the repository.
    const file = join(daemon.home.clients, 'github@reviewer.json')
    const record = await readFile(file, 'utf8')
    await writeFile(file, record.replace(apps.apiUrl, `${scene.git.origin}/api/v3`))
    const said = await doorward('webhook', 'add', 'github-review', '--repo', 'acme/door')
    assert.match(said, /doorward bot install reviewer/)
    assert.doesNotMatch(said, /webhook connect|oauth import|tunnel/)
    const text = await readFile(join(daemon.home.config, 'webhooks.yaml'), 'utf8')
    assert.match(text, /rules:\n {6}- name: review\n {8}agent: model\n {8}#.*\n {8}check: true\n/)
    assert.match(text, /\n {10}repository.full_name: acme\/door\n/)
    const second = await doorward('webhook', 'add', 'github-review', '--repo', 'acme/shop')
    assert.match(second, /webhook +\S+\/webhook\/reviewer/)
    const list = await doorward('webhook', 'list', '--json')
    const { webhooks } = JSON.parse(list) as { webhooks: { rules: { name: string }[] }[] }
    assert.deepEqual(
      webhooks.map(({ rules }) => rules.map(({ name }) => name)),
      [['review', 'review-shop']],
    )
    assert.match(await doorward('config', 'check'), /ok: 1 webhook with 2 rules/)
  })

  it('fetches and posts by tokens of one repository and one step each', async () => {
    const body = 'Whom does this greet?'
    model.behave({
      kind: 'answers',
      text: reviewOf('It greets someone else.', { path: 'hello.txt', line: 2, body }),
    })
    await daemon.client.get('/events/missed?fresh=true')
    const payload = await scene.push({ 'hello.txt': 'hello\nyou\n' }, 'opened')
    await apps.happen('reviewer', 'pull_request', JSON.parse(payload) as object)
    await daemon.client.get('/events/missed?fresh=true')
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?limit=5')
    const event = events.find(({ rule }) => rule === 'review')
    assert.ok(event, JSON.stringify([events, await daemon.client.get('/events/missed')]))
    const { state, targets } = await untilFinished(daemon, event?.id ?? '')
    assert.equal(state, 'done', JSON.stringify(targets))
    const [review] = scene.github.reviews
    assert.match(review?.body ?? '', /It greets someone else\./)
    const posts = scene.github.requests.filter(({ method }) => method === 'POST')
    for (const { headers, path } of posts) {
      const minted = mintedOf((headers.authorization ?? '').replace('Bearer ', ''))
      assert.deepEqual(
        [minted?.repositories, minted?.permissions],
        [
          ['acme/door'],
          path.endsWith('/check-runs') ? { checks: 'write' } : { pull_requests: 'write' },
        ],
      )
    }
    for (const login of new Set(scene.git.logins)) {
      const minted = mintedOf(login.replace('x-access-token:', ''))
      assert.deepEqual(minted?.permissions, { contents: 'read' })
    }
    assert.ok(scene.git.logins.length > 0)
  })

  it('gives an agent a token of its repository, which reads unless the agent may more', async () => {
    const agents = join(daemon.home.config, 'agents.yaml')
    // An answer with the token itself is not kept.
    const script = 'console.log(process.env.T.split("").reverse().join(""))'
    const printToken = JSON.stringify([process.execPath, '-e', script])
    const helper = (permissions: string) =>
      `  helper: { kind: command, sandbox: 'off', command: ${printToken}, env: { T: 'oauth:github@reviewer' }${permissions} }\n`
    const before = await readFile(agents, 'utf8')
    const hooks = join(daemon.home.config, 'webhooks.yaml')
    const rule = `      - { name: help, on: push, agent: helper, prompt_template: x, workspace: { repo: acme/door, ref: main } }\n`
    await writeFile(
      agents,
      `agents:\n${helper('')}${before.replace('agents: { ', '  ').replace(/ }\n$/, '\n')}`,
    )
    await writeFile(hooks, `${await readFile(hooks, 'utf8')}${rule}`)
    for (const [more, permissions] of [
      ['', { contents: 'read' }],
      [', permissions: { issues: read }', { issues: 'read' }],
    ] as const) {
      const now = await readFile(agents, 'utf8')
      await writeFile(agents, now.replace(/ {2}helper: .*\n/, helper(more)))
      await daemon.client.post('/daemon/reload')
      await apps.happen('reviewer', 'push', {
        ref: 'refs/heads/main',
        commits: [],
        repository: { full_name: 'acme/door' },
      })
      await daemon.client.get('/events/missed?fresh=true')
      const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events?limit=5')
      const event = events.find((one) => one.rule === 'help')
      const { result = '', detail } = await untilFinished(daemon, event?.id ?? '')
      const token = result.trim().split('').toReversed().join('')
      assert.deepEqual(mintedOf(token)?.permissions, permissions, `${detail} ${result}`)
    }
  })

  it('is what its doctor looks for: no login of its owner', async () => {
    const { stdout } = await run(['doctor', '--json'], { home: daemon.home })
    const { checks } = JSON.parse(stdout) as {
      checks: { group: string; name: string; status: string; detail: string }[]
    }
    const logins = checks.filter(({ group }) => group === 'logins')
    assert.deepEqual(
      logins.map(({ name, status }) => [name, status]),
      [['github@reviewer', 'ok']],
      JSON.stringify(logins),
    )
    assert.match(await doorward('oauth', 'list'), /^github@reviewer +reviewer\[bot\] +ok/m)
  })

  it('is missed by its doctor once it was removed, with its entry still there', async () => {
    await doorward('bot', 'remove', 'reviewer', '--yes')
    const { stdout } = await run(['doctor', '--json'], { home: daemon.home })
    const { checks } = JSON.parse(stdout) as {
      checks: { group: string; name: string; detail: string; hint?: string }[]
    }
    const check = checks.find(({ name }) => name === 'github@reviewer')
    assert.match(check?.detail ?? '', /no such bot here, which webhook \/webhook\/reviewer/)
    assert.match(check?.hint ?? '', /bot create github; or remove the entry/)
  })
})
