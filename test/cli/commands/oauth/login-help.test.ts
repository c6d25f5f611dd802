import assert from 'node:assert/strict'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { describe, it } from 'mocha'
import type { Login } from '../../../../shared/api/api.ts'
import { temporaryFolder } from '../../../support/temporary.ts'
import { untilText } from '../../../support/until-text.ts'
import { hasTerminal, resultOf, run, startOnTerminal, untilSaid } from '../../support/cli.ts'
import { statusWith } from '../../../support/daemon/fake-daemon.ts'
import { type ContractServer, startContractServer } from '../../support/contract-server.ts'

const started = {
  loginId: 'login_1',
  provider: 'github',
  verificationUrl: 'https://github.example/login/device',
  verificationUrlComplete: 'https://github.example/login/device?user_code=WDJB-MJHT',
  userCode: 'WDJB-MJHT',
  scopes: ['repo'],
  expiresAt: '2126-06-07T10:00:00.000Z',
}
const authorized: Login = {
  loginId: 'login_1',
  provider: 'github',
  status: 'authorized',
  account: { id: '1', name: 'octocat' },
}
const login = ['oauth', 'login', 'github', '--device']

const deviceServer = (outcome: Login | 'open' = authorized): Promise<ContractServer> =>
  startContractServer(({ method, path }, response) => {
    if (path === '/oauth/start') return [201, started]
    if (path === '/status') return [200, statusWith()]
    if (path === '/oauth/tokens') return [200, { tokens: [] }]
    if (method === 'DELETE') return [204, undefined]
    if (outcome !== 'open') return [200, outcome]
    response.flushHeaders()
    return undefined
  })

/** A folder with a browser that writes down what it is told to open. */
const recordingBrowser = async () => {
  const folder = await temporaryFolder()
  const opened = join(folder, 'opened')
  const script = `#!/bin/sh\nprintf '%s\\n' "$*" > '${opened}.part'\nmv '${opened}.part' '${opened}'\n`
  await writeFile(join(folder, 'browser'), script)
  await chmod(join(folder, 'browser'), 0o700)
  const env = { BROWSER: 'browser', PATH: `${folder}${delimiter}${process.env['PATH']}` }
  return { folder, env, opened }
}

describe('cli: oauth login --device', () => {
  it('asks for a code, shows page and code, and says who is logged in', async () => {
    const server = await deviceServer()
    const { code, stdout, stderr } = await run([...login, '--scopes', 'repo'], {
      home: server.home,
    })
    await server.close()
    assert.deepEqual([code, stdout], [0, 'logged in to github as octocat\n'])
    assert.match(stderr, /^ {2}https:\/\/github\.example\/login\/device$/m)
    assert.match(stderr, /^ {2}WDJB-MJHT$/m)
    assert.doesNotMatch(stderr, /no browser/)
    assert.deepEqual(server.calls.find(({ path }) => path === '/oauth/start')?.body, {
      provider: 'github',
      scopes: ['repo'],
      device: true,
    })
  })

  it('shows both with --quiet too: nobody could log in without them', async () => {
    const server = await deviceServer()
    const { stderr } = await run([...login, '--quiet'], { home: server.home })
    await server.close()
    assert.match(stderr, /login\/device\n(.*\n)*.*WDJB-MJHT/)
  })

  it('opens the page without the code, and nothing with --no-browser', async function () {
    if (process.platform !== 'linux') return this.skip()
    const server = await deviceServer()
    const { folder, env, opened } = await recordingBrowser()
    await run([...login, '--no-browser'], { home: server.home, env })
    await assert.rejects(readFile(opened), { code: 'ENOENT' })
    await run(login, { home: server.home, env })
    assert.equal(await untilText(folder, 'opened', /\n/), `${started.verificationUrl}\n`)
    await server.close()
  })

  it('opens no address that is no web page, and shows nothing that repaints a terminal', async function () {
    if (process.platform !== 'linux') return this.skip()
    const hostile = {
      ...started,
      verificationUrl: 'javascript:alert(1)//\u001b[2J',
      userCode: 'AB\u001b[2JCD\u202e',
    }
    const server = await startContractServer(({ path }) => {
      if (path === '/oauth/tokens') return [200, { tokens: [] }]
      return path === '/oauth/start' ? [201, hostile] : [200, authorized]
    })
    const { env, opened } = await recordingBrowser()
    const { code, stderr } = await run(login, { home: server.home, env })
    await server.close()
    assert.equal(code, 0)
    assert.match(stderr, /^ {2}ABCD$/m)
    assert.equal(/[\u001b\u202e]/.test(stderr), false)
    await assert.rejects(readFile(opened), { code: 'ENOENT' })
  })

  it('waits on a terminal until Ctrl-C', async function () {
    if (!hasTerminal()) return this.skip()
    const server = await deviceServer('open')
    const child = startOnTerminal('oauth login github --device --no-browser', server)
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /waiting for you at github \(\d+:\d\d\)/)
    child.stdin?.write('\u0003')
    const { code } = await ended
    await server.close()
    assert.equal(code, 130)
  })

  it('ends with 1 and the reason when the app may not use the device flow', async () => {
    const message = 'the device flow is not enabled in the settings of your app at GitHub'
    const server = await deviceServer({
      loginId: 'login_1',
      provider: 'github',
      status: 'failed',
      error: { code: 'provider-refused', message },
    })
    const { code, stdout, stderr } = await run(login, { home: server.home })
    await server.close()
    assert.deepEqual([code, stdout], [1, ''])
    assert.ok(stderr.includes(message))
  })

  it('goes not together with --paste', async () => {
    const server = await deviceServer()
    const { code, stderr } = await run([...login, '--paste'], { home: server.home })
    await server.close()
    assert.equal(code, 2)
    assert.match(stderr, /--device.*--paste/)
    assert.deepEqual(server.calls, [])
  })
})
