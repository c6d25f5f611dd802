import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createAppAuth } from '@octokit/auth-app'
import { request as octokitRequest } from '@octokit/request'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import type { BotCreation, BotDetails, BotSummary } from '../../../shared/api/bots.ts'
import type { AccessToken } from '../../../shared/api/api.ts'
import { writeBot } from '../../../daemon/bots/bot-record.ts'
import { createGithubApi } from '../../../daemon/delivery/targets/github/github-api.ts'
import { browse, textOf, visit } from '../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../support/providers/oauth-app.ts'
import {
  type GithubAppServer,
  startGithubAppServer,
} from '../../support/servers/github-app-server.ts'
import { pressBoth, readForm } from '../../support/servers/make-bot.ts'

const asBrowser = { headers: { 'sec-fetch-dest': 'document' } }

describe('bots', () => {
  let github: GithubAppServer
  let app: OAuthApp

  before(async () => {
    github = await startGithubAppServer()
  })
  beforeEach(async () => {
    app = await startOAuthApp({ gateway: { providers: { github: { api_url: github.apiUrl } } } })
  })
  afterEach(async () => {
    github.aheadMs = 0
    github.typedName = undefined
    await app.close()
  })
  after(() => github.close())

  const start = async (body: object = {}) =>
    (await app.send<BotCreation>('POST', '/bots', { provider: 'github', ...body })).body
  const view = async (id: string) =>
    (await app.send<BotCreation>('GET', `/bots/creations/${id}?wait=10`)).body

  const press = async ({ url = '' }: BotCreation) => pressBoth(url)
  const make = async (body: object = {}): Promise<BotSummary> => {
    const started = await start(body)
    await browse(await press(started))
    const { bot } = await view(started.id)
    assert.ok(bot)
    return bot
  }
  const token = async (login: string, query: string) =>
    app.send<
      AccessToken & { readonly code?: string; readonly hint?: string; readonly detail: string }
    >('GET', `/oauth/tokens/${login}/access?${query}`)

  describe('the page that makes one', () => {
    it('shows what will be made, and posts to GitHub alone', async () => {
      const started = await start({ org: 'acme', can: 'fix', url: 'https://hooks.example.com/' })
      const page = await visit(started.url ?? '', asBrowser)
      const text = textOf(page.text)
      for (const said of ['acme-doorward', 'contents: write', 'push branches', 'checks: write'])
        assert.ok(text.includes(said), said)
      assert.match(text, /To https:&#58;|To https:\/\/hooks\.example\.com\/webhook\/acme-doorward/)
      const policy = String(page.headers['content-security-policy'])
      assert.match(policy, new RegExp(`form-action ${github.origin};`))
      assert.match(policy, /default-src 'none'/)
      assert.doesNotMatch(policy, /script-src|unsafe/)
      const { action, manifest } = readForm(page.text)
      assert.match(action, /\/organizations\/acme\/settings\/apps\/new\?state=[\w-]{43}$/)
      assert.deepEqual(
        { ...manifest, redirect_url: '', default_events: [] },
        {
          name: 'acme-doorward',
          url: `${github.origin}/apps/acme-doorward`,
          hook_attributes: { url: 'https://hooks.example.com/webhook/acme-doorward', active: true },
          redirect_url: '',
          description: 'Runs the agent of its owner, on the machine of its owner.',
          public: false,
          default_events: [],
          default_permissions: {
            contents: 'write',
            pull_requests: 'write',
            issues: 'write',
            checks: 'write',
            actions: 'read',
            metadata: 'read',
          },
        },
      )
      assert.match(manifest.redirect_url, /^http:\/\/127\.0\.0\.1:\d+\/bot\/callback$/)
    })

    it('opens once; then it says how to get another', async () => {
      const { url = '' } = await start()
      assert.equal((await visit(url, asBrowser)).status, 200)
      const again = await visit(url, asBrowser)
      assert.equal(again.status, 410)
      assert.match(textOf(again.text), /opens once.*doorward bot create github/s)
    })

    it('makes the bot, keeps its key for the owner alone, and leads to its repositories', async () => {
      const started = await start({ name: 'Acme Reviewer' })
      const done = await browse(await press(started))
      assert.match(textOf(done.text), /Your bot is made/)
      assert.match(done.text, /href="[^"]*\/apps\/acme-reviewer\/installations\/new"/)
      assert.doesNotMatch(done.url, /code=/)
      const { status, bot } = await view(started.id)
      assert.deepEqual(
        [status, bot?.login, bot?.owner, bot?.isReachable],
        ['created', 'github@acme-reviewer', 'octocat', false],
      )
      const file = join(app.home.clients, 'github@acme-reviewer.json')
      assert.equal((await stat(file)).mode & 0o777, 0o600)
      const stored = JSON.parse(await readFile(file, 'utf8')) as { readonly kind: string }
      assert.equal(stored.kind, 'app')
      const env = await readFile(app.home.env, 'utf8')
      const secret = github.apps.find(({ slug }) => slug === 'acme-reviewer')?.hook.secret
      assert.match(env, new RegExp(`^GITHUB_BOT_ACME_REVIEWER_SECRET=${secret}$`, 'm'))
      assert.equal((await stat(app.home.env)).mode & 0o777, 0o600)
      assert.doesNotMatch(app.logLines.join('\n'), /BEGIN|PRIVATE|code=/)
    })

    it('moves the deliveries to the path of the name that was typed at GitHub', async () => {
      github.typedName = 'Other Name'
      const bot = await make({ name: 'first-name', url: 'https://hooks.example.com' })
      assert.equal(bot.name, 'other-name')
      assert.equal(bot.hookUrl, 'https://hooks.example.com/webhook/other-name')
      const made = github.apps.find(({ slug }) => slug === 'other-name')
      assert.equal(made?.hook.url, bot.hookUrl)
    })

    it('takes a code once, for its own state alone, and two at once do not mix', async () => {
      const [one, two] = [await start({ name: 'one-bot' }), await start({ name: 'two-bot' })]
      const [first, second] = [await press(one), await press(two)]
      const stolen = new URL(first)
      stolen.searchParams.set('state', 'x'.repeat(43))
      const refused = await browse(stolen.href)
      assert.match(textOf(refused.text), /Nothing has changed/)
      await Promise.all([browse(first), browse(second)])
      assert.deepEqual(
        [(await view(one.id)).bot?.name, (await view(two.id)).bot?.name],
        ['one-bot', 'two-bot'],
      )
      const { code } = await app.send('GET', `/bots/creations/nope`).then(({ body }) => body)
      assert.equal(code, 'bot-not-found')
    })

    it('says so where the code is too old', async () => {
      const started = await start({ name: 'late-bot' })
      const callback = await press(started)
      github.aheadMs = 2 * 3_600_000
      const page = await browse(callback)
      assert.match(textOf(page.text), /was not made.*used before, or is older than an hour/s)
      const { status, error } = await view(started.id)
      assert.deepEqual([status, error?.code], ['failed', 'bot-refused'])
    })

    it('ends without a bot when the person goes away, or cancels', async () => {
      const started = await start({ name: 'nobody' })
      await app.send('DELETE', `/bots/creations/${started.id}`)
      assert.equal((await view(started.id)).status, 'cancelled')
      await app.close()
      app = await startOAuthApp({
        gateway: { providers: { github: { api_url: github.apiUrl } } },
        loginTimeoutMs: 1,
      })
      const second = await start({ name: 'nobody' })
      const { status, error } = await view(second.id)
      assert.deepEqual([status, error?.code], ['expired', 'login-expired'])
    })

    it('has no page any more once it was cancelled, even while another waits', async () => {
      const [first] = [await start({ name: 'first-one' }), await start({ name: 'other-one' })]
      await app.send('DELETE', `/bots/creations/${first.id}`)
      assert.equal((await visit(first.url ?? '', asBrowser)).status, 404)
    })

    it('ends the oldest of more than twenty, and gives its port back', async () => {
      const all: BotCreation[] = []
      for (let count = 0; count < 21; count += 1) all.push(await start({ name: `many-${count}` }))
      for (const { id } of all.slice(1)) await app.send('DELETE', `/bots/creations/${id}`)
      await assert.rejects(visit(all[0]?.url ?? '', asBrowser), /ECONNREFUSED/)
    })

    const bad: [string, object, RegExp][] = [
      ['another provider', { provider: 'gitlab' }, /provider/],
      ['a path for an organization', { org: '../x' }, /^org: /],
      ['a name of 35 letters', { name: 'x'.repeat(35) }, /^name: .*34/],
      ['no address', { url: 'javascript:alert(1)' }, /^url: /],
      ['an unknown ability', { can: 'all' }, /^can: /],
    ]
    for (const [what, body, said] of bad)
      it(`refuses ${what}`, async () => {
        const { status, body: problem } = await app.send('POST', '/bots', {
          provider: 'github',
          ...body,
        })
        assert.equal(status, 400)
        assert.match(problem.detail, said)
      })
  })

  describe('its tokens', () => {
    let bot: BotSummary
    let names = 0

    beforeEach(async () => {
      names += 1
      bot = await make({ name: `tokens-${names}` })
      github.install(bot.name, ['acme/shop', 'acme/door'])
    })

    it('are of one repository, with the permissions asked for, and by default read contents', async () => {
      const { body } = await token(bot.login, 'repository=acme/shop')
      assert.deepEqual(body.scopes, ['contents:read'])
      const minted = github.minted.find((one) => one.token === body.accessToken)
      assert.deepEqual(
        [minted?.repositories, minted?.permissions],
        [['acme/shop'], { contents: 'read' }],
      )
      const query = 'repository=acme/shop&permissions=checks:write,pull_requests:write'
      const { body: more } = await token(bot.login, query)
      assert.notEqual(more.accessToken, body.accessToken)
      assert.deepEqual(github.minted.find((one) => one.token === more.accessToken)?.permissions, {
        checks: 'write',
        pull_requests: 'write',
      })
      const asked = (repository: string) =>
        fetch(`${github.apiUrl}/repos/${repository}`, {
          headers: { authorization: `Bearer ${body.accessToken}` },
        })
      assert.equal((await asked('acme/shop')).status, 200)
      assert.equal((await asked('acme/door')).status, 404)
    })

    it('are kept for the hour, made once for many askers, and anew on demand', async () => {
      const before = github.minted.length
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => token(bot.login, 'repository=acme/shop')),
      )
      assert.equal(new Set(answers.map(({ body }) => body.accessToken)).size, 1)
      assert.equal(github.minted.length - before, 1)
      const { body } = await token(bot.login, 'repository=acme/shop&min_validity=86400')
      assert.notEqual(body.accessToken, answers[0]?.body.accessToken)
    })

    const refused: [string, () => void, string, string, RegExp][] = [
      ['no repository', () => undefined, '', 'repository-needed', /--repo OWNER\/NAME/],
      [
        'a repository that it does not have',
        () => undefined,
        'repository=acme/other',
        'bot-not-installed',
        /doorward bot install tokens-/,
      ],
      [
        'a permission that was not accepted',
        () => undefined,
        'repository=acme/shop&permissions=workflows:write',
        'bot-refused',
        /accept it where it is installed/,
      ],
      [
        'an App that was deleted',
        () => github.deleteApp(bot.name),
        'repository=acme/shop',
        'bot-refused',
        /bot rotate tokens-\d+ --key/,
      ],
      [
        'a key that was replaced at GitHub',
        () => void github.newKey(bot.name),
        'repository=acme/shop',
        'bot-refused',
        /bot rotate/,
      ],
      [
        'an App that was uninstalled',
        () => github.uninstall(bot.name),
        'repository=acme/shop',
        'bot-not-installed',
        /bot install/,
      ],
      [
        'a clock that is off by an hour',
        () => (github.aheadMs = 3_600_000),
        'repository=acme/shop',
        'bot-refused',
        /set the clock/,
      ],
    ]
    for (const [what, change, query, code, hint] of refused)
      it(`say clearly why there is none: ${what}`, async () => {
        change()
        const { body } = await token(bot.login, query)
        assert.equal(body.code, code)
        assert.match(body.hint ?? '', hint)
        if (what.startsWith('a clock')) assert.match(body.detail, /60 min behind/)
      })

    it('say so where the installation is suspended', async () => {
      github.uninstall(bot.name)
      github.install(bot.name, ['acme/shop']).isSuspended = true
      const { body } = await token(bot.login, 'repository=acme/shop')
      assert.match(body.detail, /suspended/)
    })

    const bad = [
      'repository=acme',
      'repository=acme/..',
      'repository=a/b/c',
      'repository=a/b&permissions=x',
    ]
    for (const query of bad)
      it(`refuses ${query}`, async () => {
        assert.equal((await token(bot.login, query)).status, 400)
      })

    it('are told of once a minute for each program that asks', async () => {
      await token(bot.login, 'repository=acme/shop')
      await token(bot.login, 'repository=acme/shop&permissions=checks:write')
      const told = app.events.filter(
        ({ what, provider }) => what === 'token' && provider === bot.login,
      )
      assert.equal(told.length, 1)
    })

    it('are never in the log', async () => {
      const { body } = await token(bot.login, 'repository=acme/shop')
      const said = [...app.logLines, JSON.stringify(app.events)].join('\n')
      assert.equal(said.includes(body.accessToken), false)
      assert.doesNotMatch(said, /ghs_/)
    })

    it('come from a stand-in that GitHub’s own client takes for GitHub', async () => {
      const made = github.apps.find(({ slug }) => slug === bot.name)
      const auth = createAppAuth({
        appId: made?.id ?? 0,
        privateKey: made?.pem ?? '',
        request: octokitRequest.defaults({ baseUrl: github.apiUrl }),
      })
      const { json } = { json: await (await fetch(`${github.apiUrl}/app`)).json() }
      assert.match(JSON.stringify(json), /could not be decoded/)
      const installation = github.install(bot.name, ['octo/app'])
      const { token: minted, permissions } = await auth({
        type: 'installation',
        installationId: installation.id,
        repositoryNames: ['app'],
        permissions: { contents: 'read' },
      })
      assert.deepEqual(permissions, { contents: 'read' })
      const found = github.minted.find((one) => one.token === minted)
      assert.deepEqual(found?.repositories, ['octo/app'])
    })
  })

  describe('what is kept', () => {
    it('is listed and shown as GitHub has it', async () => {
      const bot = await make({ name: 'shown' })
      github.install('shown', ['acme/shop'])
      const { bots } = (await app.send<{ bots: BotSummary[] }>('GET', '/bots')).body
      assert.deepEqual(bots, [bot])
      const details = (await app.send<BotDetails>('GET', '/bots/github@shown')).body
      assert.deepEqual(details.installations, [
        { account: 'acme', isSuspended: false, isAll: false, repositories: ['acme/shop'] },
      ])
      assert.equal(details.permissions['checks'], 'write')
    })

    it('gets another key, once GitHub takes it', async () => {
      await make({ name: 'rotated' })
      github.install('rotated', ['acme/shop'])
      const rotate = (body: object) => app.send('POST', '/bots/rotated/rotate', body)
      assert.equal((await rotate({ privateKey: 'no key' })).body.code, 'bot-refused')
      const old = github.apps.find(({ slug }) => slug === 'rotated')?.pem ?? ''
      const privateKey = github.newKey('rotated')
      assert.equal((await rotate({ privateKey: old })).body.code, 'bot-refused')
      assert.equal((await rotate({ privateKey })).status, 200)
      assert.equal((await token('github@rotated', 'repository=acme/shop')).status, 200)
    })

    it('gets another secret, here and at GitHub', async () => {
      await make({ name: 'secret' })
      assert.equal((await app.send('POST', '/bots/secret/rotate', { secret: true })).status, 200)
      const secret = github.apps.find(({ slug }) => slug === 'secret')?.hook.secret
      const env = await readFile(app.home.env, 'utf8')
      assert.deepEqual(env.match(/^GITHUB_BOT_SECRET_SECRET=.*$/gm), [
        `GITHUB_BOT_SECRET_SECRET=${secret}`,
      ])
    })

    it('keeps the secret that GitHub has, where GitHub does not take another', async () => {
      await make({ name: 'unmoved' })
      const before = await readFile(app.home.env, 'utf8')
      github.next((response) => void response.writeHead(502).end())
      const { status, body } = await app.send('POST', '/bots/unmoved/rotate', { secret: true })
      assert.deepEqual([status, body.code], [502, 'provider-unavailable'])
      assert.equal(await readFile(app.home.env, 'utf8'), before)
    })

    it('is removed here', async () => {
      await make({ name: 'removed' })
      assert.equal((await app.send('DELETE', '/bots/removed')).status, 200)
      assert.equal((await app.send('GET', '/bots/removed')).body.code, 'bot-not-found')
      const { body } = await token('github@removed', 'repository=acme/shop')
      assert.equal(body.code, 'not-logged-in')
    })

    it('gives tokens to its own server alone, whatever server the configuration names', async () => {
      const { login } = await make({ name: 'at-home' })
      github.install('at-home', ['acme/shop'])
      const { home } = app
      const bots = app.oauth.bots
      const bot = await bots.get('at-home')
      const before = github.minted.length
      const asks = (places: object) =>
        app.oauth.access(login, { repository: 'acme/shop', asker: 'a test', ...places })
      for (const places of [
        { apiUrl: 'https://api.github.com' },
        { apiUrl: 'http://127.0.0.1:1' },
        { gitOrigin: 'https://github.com' },
      ])
        await assert.rejects(
          asks(places),
          (error: { readonly code?: string }) => error.code === 'config-invalid',
        )
      assert.equal(github.minted.length, before)
      assert.match((await asks({ apiUrl: bot.apiUrl })).accessToken, /^ghs_/)
      // Of an enterprise, where targets.github.api_url still has its default.
      await writeBot(home, { ...bot, apiUrl: 'https://ghe.example.com/api/v3' })
      await assert.rejects(
        createGithubApi(undefined, {
          target: 'github',
          tokenEnv: undefined,
          provider: login,
          env: {},
          access: app.oauth.access.bind(app.oauth),
        })(
          {
            attempt: { signal: AbortSignal.timeout(5000), timeoutMs: 5000 },
            grant: { repository: 'acme/shop', permissions: { issues: 'write' } },
          },
          async () => assert.fail('a token for another server'),
        ),
        /at-home is at ghe\.example\.com: api\.github\.com gets no token of it/,
      )
    })

    it('keeps its name and its file: no other bot and no login takes them', async () => {
      await make({ name: 'unique' })
      const file = join(app.home.clients, 'github@unique.json')
      const before = await readFile(file, 'utf8')
      const second = await app.send<{ readonly code: string }>('POST', '/bots', {
        provider: 'github',
        name: 'Unique',
      })
      assert.deepEqual([second.status, second.body.code], [409, 'bot-exists'])
      for (const [method, path, body] of [
        ['POST', '/oauth/start', { provider: 'github@unique', clientId: 'other' }],
        ['POST', '/oauth/import', { provider: 'github@unique', accessToken: 'gho_other' }],
        ['DELETE', '/oauth/tokens/github@unique?forget=true', undefined],
      ] as const) {
        const answer = await app.send<{ readonly code: string }>(method, path, body)
        assert.deepEqual([answer.status, answer.body.code], [409, 'bot-exists'], path)
      }
      // Its owner types the name of the first one on the page of GitHub.
      github.typedName = 'unique'
      const started = await start({ name: 'second' })
      await browse(await press(started))
      const { status, error } = await view(started.id)
      assert.deepEqual([status, error?.code], ['failed', 'bot-exists'])
      assert.equal(await readFile(file, 'utf8'), before)
    })

    it('is only what GitHub made: a page elsewhere is refused', async () => {
      const started = await start({ name: 'lied' })
      const callback = await press(started)
      github.next((response) => {
        response.writeHead(201, { 'content-type': 'application/json' })
        response.end(
          JSON.stringify({
            id: 1,
            slug: 'lied',
            name: 'lied',
            owner: { login: 'x' },
            client_id: 'a',
            client_secret: 'b',
            webhook_secret: 'c',
            pem: github.apps[0]?.pem,
            html_url: 'https://evil.example/apps/lied',
          }),
        )
      })
      await browse(callback)
      assert.equal((await view(started.id)).status, 'failed')
    })
  })
})
