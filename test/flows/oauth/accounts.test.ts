import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { AccessToken, EventRecord } from '../../../shared/api/api.ts'
import { resultOf, run, start, untilSaid } from '../../cli/support/cli.ts'
import { browse } from '../../support/desktop/browser.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../support/providers/authorization-server.ts'
import { send } from '../../support/servers/http.ts'

/** No answer with the token itself would leave. */
const printToken = JSON.stringify([
  process.execPath,
  '-e',
  "process.stdout.write(require('node:crypto').hash('sha256', String(process.env.TOKEN)))",
])

describe('two accounts of one provider, by the command line', () => {
  let server: AuthorizationServer
  let daemon: RunningDaemon

  before(async () => {
    server = await startAuthorizationServer()
    daemon = await startDaemon({
      gateway: `
oauth: { callback_port: 0 }
providers:
  mine:
    issuer: ${server.issuer}
    scopes: [openid, email]
    client_id: public
`,
      webhooks:
        'webhooks:\n  - { path: /w, agent: a, prompt_template: x }\n  - { path: /none, agent: b, prompt_template: x }\n',
      agents: `agents:
  a: { kind: command, command: ${printToken}, env: { TOKEN: "oauth:mine@work" } }
  b: { kind: command, command: ${printToken}, env: { TOKEN: "oauth:slack" } }
`,
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    await server.close()
  })

  const doorward = async (...args: readonly string[]) => run(args, { home: daemon.home })
  const logIn = async (...words: readonly string[]) => {
    const login = start(['oauth', 'login', ...words, '--no-browser'], { home: daemon.home })
    const ended = resultOf(login)
    const said = await untilSaid(login, 'stderr', /http\S+\n/)
    await browse(/http\S+/.exec(said)?.[0] ?? '')
    return ended
  }
  const tokenOf = async (login: string) =>
    (await daemon.client.get<AccessToken>(`/oauth/tokens/${login}/access?exact=true`)).accessToken

  it('logs in to the second one under its name, and says that it is the same person', async () => {
    assert.equal((await logIn('mine')).stdout, 'logged in to mine as ada@example.com\n')
    const { code, stdout, stderr } = await logIn('mine', '--as', 'work')
    assert.deepEqual([code, stdout], [0, 'logged in to mine@work as ada@example.com\n'])
    assert.match(stderr, /warning: mine is a login of the same account\n/)
    assert.match(stderr, /then: doorward oauth login mine@work\n/)
    assert.equal(existsSync(join(daemon.home.tokens, 'mine@work.json')), true)
  })

  it('lists both, and takes their names in every command', async () => {
    const { stdout } = await doorward('oauth', 'list')
    assert.match(stdout, /^mine \(default\) +ada@example\.com .*\nmine@work +ada@example\.com /m)
    const token = await doorward('oauth', 'token', 'mine@work')
    assert.equal(token.stdout.trim(), await tokenOf('mine@work'))
    const print = ['--', process.execPath, '-e', 'console.log(process.env.MINE_TOKEN)']
    const exec = await doorward('oauth', 'exec', 'mine@work', ...print)
    assert.equal(exec.stdout, token.stdout)
    const both = await doorward('oauth', 'exec', 'mine', 'mine@work', ...print)
    assert.match(both.stderr, /MINE_TOKEN is asked for twice: for mine and mine@work/)
    assert.match((await doorward('status')).stdout, /mine@work ada@example\.com/)
    const completed = await doorward('__complete', '--', 'oauth', 'token', 'mine')
    assert.match(completed.stdout, /^mine\t?\nmine@work\t?\n/m)
    const accounts = await doorward('__complete', '--', 'oauth', 'default', 'mine', '')
    assert.match(accounts.stdout, /^work\t?/m)
  })

  it('gives an agent the token of the account that its entry names', async () => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}/w`, { headers, body: '{}' })
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.deepEqual(
      [event.state, event.result],
      ['done', hash('sha256', await tokenOf('mine@work'))],
    )
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
    const issued = events.filter(({ kind }) => kind === 'oauth')
    assert.equal(issued[0]?.detail, 'mine@work: token issued to agent a')
    assert.equal(JSON.stringify(issued).includes(event.result ?? ''), false)
  })

  it('fails the event of an agent, with the command to run, where there is no login', async () => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}/none`, { headers, body: '{}' })
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.deepEqual([event.state, event.stage, event.code], ['failed', 'agent', 'not-logged-in'])
    assert.match(event.detail ?? '', /not logged in to slack/)
  })

  it('chooses which account the name of the provider means', async () => {
    assert.equal((await doorward('oauth', 'default', 'mine')).stdout, 'mine means mine\n')
    const chosen = await doorward('oauth', 'default', 'mine', 'work')
    assert.equal(chosen.stdout, 'mine means mine@work\n')
    assert.equal(
      (await doorward('oauth', 'token', 'mine')).stdout.trim(),
      await tokenOf('mine@work'),
    )
    assert.match((await doorward('oauth', 'list')).stdout, /^mine@work \(default\) /m)
    const missing = await doorward('oauth', 'default', 'mine', 'nobody')
    assert.deepEqual([missing.code, missing.stdout], [4, ''])
    assert.match(missing.stderr, /not logged in to mine@nobody/)
    const unnamed = await doorward('oauth', 'default', 'mine', '--unnamed', '--json')
    assert.deepEqual(JSON.parse(unnamed.stdout), { provider: 'mine', default: 'mine' })
  })

  it('refuses names that are none', async () => {
    for (const [args, said] of [
      [['login', 'mine', '--as', '../x'], /"\.\.\/x" is not the name of an account/],
      [['login', 'mine', '--as', ''], /"" is not the name of an account/],
      [['login', 'mine@work', '--as', 'play'], /mine@work and --as play name two accounts/],
      [['token', 'mine@Work'], /did you mean "mine@work"\?/],
      [['default', 'mine', 'A'], /"A" is not the name of an account/],
      [['default', 'mine@work'], /mine@work always means the same account/],
    ] as const) {
      const { code, stdout, stderr } = await doorward('oauth', ...args)
      assert.deepEqual([code === 0, stdout], [false, ''], args.join(' '))
      assert.match(stderr, said)
    }
  })

  it('logs out of one, and the other one stays', async () => {
    const { code, stdout } = await doorward('oauth', 'logout', 'mine@work')
    assert.deepEqual([code, stdout.startsWith('logged out of mine@work')], [0, true])
    assert.equal(existsSync(join(daemon.home.tokens, 'mine@work.json')), false)
    assert.equal((await doorward('oauth', 'token', 'mine')).code, 0)
  })
})
