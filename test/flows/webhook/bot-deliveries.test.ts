import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { BotCreation } from '../../../shared/api/bots.ts'
import type { EventRecord } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { untilText } from '../../support/until-text.ts'
import { makeBot } from '../../support/servers/make-bot.ts'
import {
  type GithubAppServer,
  startGithubAppServer,
} from '../../support/servers/github-app-server.ts'

const rule = (name: string, repository: string) =>
  `      - { name: ${name}, on: push, filter: { repository.full_name: ${repository} }, agent: echo, prompt_template: 'pushed to {{event.ref}}' }\n`

describe('the deliveries of a bot', () => {
  let github: GithubAppServer
  let daemon: RunningDaemon

  before(async () => {
    github = await startGithubAppServer()
    daemon = await startDaemon({
      gateway: `
oauth: { callback_port: 0 }
providers: { github: { api_url: "${github.apiUrl}" } }
`,
      agents: 'agents: { echo: { kind: echo } }\n',
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    github.close()
  })

  const edit = async (change: (text: string) => string) => {
    const file = join(daemon.home.config, 'webhooks.yaml')
    await writeFile(file, change(await readFile(file, 'utf8')))
    await daemon.client.post('/daemon/reload')
  }
  const eventsOf = async (path: string) =>
    (await daemon.client.get<{ events: EventRecord[] }>(`/events?webhook=${path}`)).events

  it('have an entry that runs nothing yet, and says so', async () => {
    const { stdout } = await makeBot({ github, daemon }, ['--name', 'reader'], ['acme/shop'])
    assert.match(stdout, /^made the bot reader /)
    const text = await readFile(join(daemon.home.config, 'webhooks.yaml'), 'utf8')
    assert.match(text, /source: { provider: github, app: reader, mode: poll }\n/)
    assert.match(text, /rules: \[\]\n/)
    const check = await run(['config', 'check'], { home: daemon.home })
    assert.equal(check.code, 0, check.stdout + check.stderr)
    const explained = await run(
      ['webhook', 'explain', '/webhook/reader', '--sample', 'github:push'],
      { home: daemon.home },
    )
    assert.match(explained.stderr, /has no rule yet: it runs nothing/)
  })

  it('are read from its own list where there is no address, for all its repositories', async () => {
    github.install('reader', ['acme/shop', 'acme/door'])
    await edit((text) =>
      text.replace(
        'rules: []\n',
        `rules:\n${rule('shop', 'acme/shop')}${rule('door', 'acme/door')}`,
      ),
    )
    await run(['events', 'missed'], { home: daemon.home })
    for (const name of ['shop', 'door'])
      await github.happen('reader', 'push', {
        ref: `refs/heads/${name}`,
        commits: [],
        repository: { full_name: `acme/${name}` },
      })
    await daemon.client.get('/events/missed?fresh=true')
    const events = await eventsOf('/webhook/reader')
    assert.deepEqual(new Set(events.map(({ rule: name }) => name)), new Set(['door', 'shop']))
    for (const { id } of events) assert.equal((await untilFinished(daemon, id)).state, 'done')
  })

  it('come to another address after one request', async () => {
    await makeBot(
      { github, daemon },
      ['--name', 'pushed', '--url', 'https://one.example'],
      ['acme/shop'],
    )
    const app = github.apps.find(({ slug }) => slug === 'pushed')
    assert.equal(app?.hook.url, 'https://one.example/webhook/pushed')
    await edit((text) =>
      text.replace(/(app: pushed }[^]*)rules: \[\]\n/, `$1rules:\n${rule('all', 'acme/shop')}`),
    )
    const patches = () =>
      github.requests.filter(({ method, path }) => method === 'PATCH' && path.endsWith('/config'))
    const file = join(daemon.home.config, 'gateway.yaml')
    const gateway = await readFile(file, 'utf8')
    const before = patches().length
    await writeFile(file, `${gateway}server: { port: 0, public_url: "https://two.example" }\n`)
    await daemon.client.post('/daemon/reload')
    await untilText(daemon.home.logs, 'daemon.log', /come to the new address/)
    assert.equal(patches().length, before + 1)
    assert.equal(app?.hook.url, 'https://two.example/webhook/pushed')
    github.tunnel = daemon.url
    const sent = await github.happen('pushed', 'push', {
      ref: 'refs/heads/main',
      commits: [],
      repository: { full_name: 'acme/shop' },
    })
    assert.equal(sent.status, 202)
    const [event] = await eventsOf('/webhook/pushed')
    assert.equal((await untilFinished(daemon, event?.id ?? '')).state, 'done')
  })

  it('are told where the App is gone', async () => {
    github.deleteApp('reader')
    await daemon.client.get('/events/missed?fresh=true').catch(() => undefined)
    const { stderr } = await run(['events', 'missed'], { home: daemon.home })
    assert.match(stderr, /github does not know the bot reader or its key/)
    const creation = await daemon.client
      .get<BotCreation>('/bots/creations/none')
      .catch((error: Error) => error.message)
    assert.match(String(creation), /no bot is being made/)
  })
})
