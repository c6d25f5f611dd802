import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { copyFile, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { noteSent } from '../../daemon/oauth/tokens/refresh.ts'
import { writeBot } from '../../daemon/bots/bot-record.ts'
import { readToken, writeToken } from '../../daemon/oauth/tokens/token-store.ts'
import { Keychain } from '../../daemon/oauth/tokens/keychain.ts'
import { addPending, listPending } from '../../daemon/oauth/logout/revocation-store.ts'
import type { AccessToken, Status } from '../../shared/api/api.ts'
import { type Home, prepareHome } from '../../shared/home/home.ts'
import { makeClaudeStandIn } from '../support/claude-stand-in.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { examined } from '../support/daemon/doctor.ts'
import { restart, stopHome } from '../support/daemon/restart.ts'
import { connect } from '../../shared/client/client.ts'
import { keychainProgram, packageFolder } from '../../shared/version.ts'
import { describeOnLinux } from '../support/desktop/desktop.ts'
import { type Keyring, startKeyring } from '../support/desktop/keyring.ts'
import { send } from '../support/servers/http.ts'
import { startGithubAppServer } from '../support/servers/github-app-server.ts'
import {
  startRotatingProvider,
  type RotatingProvider,
} from '../support/providers/rotating-provider.ts'
import { gatewayOf } from '../support/providers/oauth-app.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { filesIn, temporaryFolder, temporaryHome } from '../support/temporary.ts'
import { untilText } from '../support/until-text.ts'

const gatewayWith = (store: string, provider: RotatingProvider) =>
  `oauth: { callback_port: 0 }\ntokens: { store: ${store} }\nproviders:\n  acme: ${provider.entry}\n  other: ${provider.entry}\n`

const keychainWith = (env: NodeJS.ProcessEnv, limits = { answer: 60_000, wait: 60_000 }) =>
  new Keychain({
    gateway: gatewayOf({ tokens: { store: 'keychain' } }),
    env: { PATH: process.env['PATH'], ...env },
    warn: () => undefined,
    limits,
  })

describeOnLinux('token files with tokens.store: keychain', () => {
  let keyring: Keyring
  let provider: RotatingProvider
  let home: Home
  let daemon: RunningDaemon | undefined

  beforeEach(async () => {
    keyring = await startKeyring()
    provider = await startRotatingProvider(3600)
    home = await temporaryHome({ gateway: gatewayWith('keychain', provider) })
    await prepareHome(home)
  })
  afterEach(async () => {
    await daemon?.stop()
    daemon = undefined
    provider.close()
    await keyring.stop()
  })

  const start = async (env: Readonly<Record<string, string>> = keyring.env) => {
    daemon = await startDaemon({ home, variables: env })
    return daemon
  }
  const store = (login: string, refreshToken: string, agoMs?: number) =>
    storeLogin(home, login, refreshToken, agoMs, { tokenOrigin: provider.origin })
  const pathOf = (login: string) => join(home.tokens, `${login}.json`)
  const read = (login: string) => readFile(pathOf(login), 'utf8')
  const configure = async (store: string, more = '') =>
    writeFile(join(home.config, 'gateway.yaml'), gatewayWith(store, provider) + more)
  const access = (login: string, minValidity = 60) =>
    daemon?.client.get<AccessToken>(`/oauth/tokens/${login}/access?min_validity=${minValidity}`)
  const problems = async () =>
    ((await daemon?.client.get<Status>('/status'))?.problems ?? []).map(
      ({ code, detail }) => `${code}: ${detail}`,
    )
  const logged = (text: RegExp) => untilText(home.logs, 'daemon.log', text)
  const sealedForm = /"sealed": "aes-256-gcm"/
  const isSealed = (text: string) => sealedForm.test(text)

  it('seals the key of a bot too, as token files are, and opens it for its tokens', async () => {
    await keyring.unlock()
    const github = await startGithubAppServer()
    try {
      const code = github.press({
        name: 'sealed',
        default_permissions: { contents: 'read' },
        default_events: [],
      })
      const [app] = github.apps
      assert.ok(app && code)
      github.install('sealed', ['acme/shop'])
      await writeBot(home, {
        kind: 'app',
        version: 1,
        slug: 'sealed',
        name: 'sealed',
        appId: app.id,
        clientId: app.clientId,
        clientSecret: 'never-shown-anywhere',
        privateKey: app.pem,
        owner: 'octocat',
        apiUrl: github.apiUrl,
        pageUrl: `${github.origin}/apps/sealed`,
        settingsUrl: `${github.origin}/settings/apps/sealed`,
        can: 'review',
        hookUrl: 'https://doorward.invalid/webhook/sealed',
        createdAt: new Date().toISOString(),
      })
      const file = join(home.clients, 'github@sealed.json')
      await start()
      const sealed = await untilText(home.clients, 'github@sealed.json', /"sealed": "aes-256-gcm"/)
      assert.doesNotMatch(sealed, /never-shown|PRIVATE/)
      assert.equal((await stat(file)).mode & 0o777, 0o600)
      const { accessToken } =
        (await daemon?.client.get<AccessToken>(
          '/oauth/tokens/github@sealed/access?repository=acme/shop',
        )) ?? {}
      assert.match(accessToken ?? '', /^ghs_/)
      await daemon?.stop()
      await start()
      assert.deepEqual(await problems(), [])
      await configure('file')
      await daemon?.client.post('/daemon/reload')
      await untilText(home.clients, 'github@sealed.json', /BEGIN RSA PRIVATE KEY/)
    } finally {
      github.close()
    }
  })

  it('are sealed at the start, read by every later daemon, and plain again afterwards', async () => {
    await keyring.unlock()
    await store('acme', 'rt-0')
    await addPending(home, {
      version: 1,
      provider: 'gone',
      tokens: { accessToken: 'of-before' },
      client: { clientId: 'x', clientSecret: 'secret-of-x' },
      account: null,
      extent: 'grant',
      since: new Date().toISOString(),
    })
    const [revocation = ''] = await listPending(home)
    // It is written in its new form by the next attempt.
    const pending = (form: RegExp) => untilText(join(home.tokens, 'revoke'), revocation, form)

    const { client } = await start()
    await logged(/"files":1.*token files were sealed with the key in the keychain/)
    const sealed = await read('acme')
    assert.ok(isSealed(sealed))
    assert.doesNotMatch(
      sealed + (await pending(sealedForm)),
      /of-before|rt-0|secret-of-x|accessToken/,
    )
    assert.equal((await stat(pathOf('acme'))).mode & 0o777, 0o600)
    assert.equal((await access('acme'))?.accessToken, 'of-before')
    assert.deepEqual(
      (await problems()).filter((line) => !line.startsWith('revocation')),
      [],
    )

    // A refresh seals too, with another nonce.
    assert.equal((await access('acme', 3000))?.accessToken, 'at-1')
    const renewed = await read('acme')
    assert.ok(isSealed(renewed) && renewed !== sealed)

    await restart(client)
    const next = await connect(home)
    const token = await next.get<AccessToken>('/oauth/tokens/acme/access')
    assert.equal(token.accessToken, 'at-1')
    const { of } = await examined(home)
    assert.equal(of('logins', 'keychain')[0]?.status, 'ok')
    assert.equal(of('logins', 'acme')[0]?.status, 'ok')

    await configure('file')
    await next.post('/daemon/reload')
    next.close()
    await logged(/"files":1.*token files were made plain again/)
    assert.match(await read('acme'), /"accessToken": "at-1"/)
    await pending(/secret-of-x/)
    await stopHome(home)
    await start({})
    assert.equal((await access('acme'))?.accessToken, 'at-1')
  })

  it('are plain, and reported, where there is no keychain', async () => {
    await store('acme', 'rt-0')
    for (const env of [{}, keyring.env]) {
      await start(env)
      assert.equal((await access('acme', 3000))?.accessToken.startsWith('at-'), true)
      assert.match(await read('acme'), /"accessToken": "at-/)
      assert.match(
        (await problems()).join('\n'),
        /^keychain-unavailable: no keychain can be reached \(.*\): new tokens are stored as plain files \(mode 0600\), not sealed$/,
      )
      const { of } = await examined(home)
      assert.equal(of('logins', 'keychain')[0]?.status, 'warning')
      assert.equal(of('logins', 'acme')[0]?.status, 'ok')
      await daemon?.stop()
    }
    await logged(/"code":"keychain-unavailable"/)
  })

  it('seals conversations with the same key, which start over once it is lost', async () => {
    await keyring.unlock()
    const talk = await temporaryFolder()
    const claude = await makeClaudeStandIn(join(talk, 'none'))
    const variables = {
      ...keyring.env,
      HOME: talk,
      PATH: [claude.folder, process.env['PATH']].join(delimiter),
    }
    await configure('keychain', 'sessions: { store: sealed }\n')
    await writeFile(
      join(home.config, 'agents.yaml'),
      "agents: { claude: { kind: claude, sandbox: 'off' } }\n",
    )
    await writeFile(
      join(home.config, 'webhooks.yaml'),
      "webhooks: [{ path: /talk, agent: claude, prompt_template: '{{event.text}}', session: '{{webhook.path}}' }]\n",
    )
    const ask = async (text: string) => {
      const running = await start(variables)
      const headers = { 'content-type': 'application/json' }
      const reply = await send(`${running.url}/talk`, { headers, body: JSON.stringify({ text }) })
      const event = await untilFinished(running, String(reply.json()['id']))
      await running.stop()
      return event
    }
    assert.equal((await ask('say:canary')).result, 'canary')
    const [name = ''] = await filesIn(join(home.state, 'sessions'))
    const sealed = await readFile(join(home.state, 'sessions', name), 'utf8')
    assert.ok(isSealed(sealed) && !sealed.includes('canary'), sealed)
    assert.ok(!(await filesIn(home.run)).includes('sessions.key'))
    assert.equal((await ask('say:two')).result, 'canary,two')
    await keyring.removeKey()
    const { result, session, detail } = await ask('say:three')
    assert.deepEqual([result, session?.state], ['three', 'anew'])
    assert.match(detail ?? '', /a new conversation was started: its file could not be opened/)
  })

  it('wait for a keychain that is locked, unchanged, and work once it is unlocked', async () => {
    await keyring.unlock()
    await store('acme', 'rt-0')
    await start()
    await logged(/token files were sealed/)
    await daemon?.stop()
    const sealed = await read('acme')

    await keyring.lock()
    await store('other', 'rt-0')
    await start()
    await assert.rejects(async () => access('acme'), {
      code: 'keychain-unavailable',
      message: `${pathOf('acme')} is sealed, and the keychain is locked; it is not lost`,
      hint: 'unlock it, then: doorward daemon reload',
    })
    await assert.rejects(async () => daemon?.client.post('/oauth/start', { provider: 'acme' }), {
      code: 'keychain-unavailable',
    })
    await assert.rejects(async () => daemon?.client.delete('/oauth/tokens/acme'), {
      code: 'keychain-unavailable',
    })
    // Others go on, as plain files.
    assert.equal((await access('other', 3000))?.accessToken, 'at-1')
    assert.match(await read('other'), /"accessToken": "at-1"/)
    assert.deepEqual(await problems(), [
      'keychain-unavailable: the keychain is locked: new tokens are stored as plain files (mode 0600), not sealed',
      `keychain-unavailable: ${pathOf('acme')} is sealed, and the keychain is locked; it is not lost`,
    ])
    const { of } = await examined(home)
    assert.deepEqual(
      [...of('logins', 'keychain'), ...of('logins', 'acme')].map(({ status }) => status),
      ['warning', 'error'],
    )
    assert.equal(await read('acme'), sealed)

    await keyring.unlock()
    await daemon?.client.post('/daemon/reload')
    assert.equal((await access('acme'))?.accessToken, 'of-before')
    await logged(/files were sealed[^]*keychain is locked[^]*files were sealed/)
    assert.ok(isSealed(await read('other')))
    assert.deepEqual(await problems(), [])
  })

  it('of a renewal that was interrupted are saved once the keychain is unlocked', async () => {
    await keyring.unlock()
    await store('acme', 'rt-0')
    await start()
    await logged(/token files were sealed/)
    await daemon?.stop()
    const keychain = keychainWith(keyring.env)
    await keychain.ask({ mayCreate: false })
    const sealedHome = { ...home, keychain }
    const record = await readToken(sealedHome, 'acme')
    assert.ok(record)
    await noteSent(home, 'acme', 'rt-0', Date.now() - 1000)
    const path = pathOf('acme')
    const before = await read('acme')
    await writeToken(sealedHome, {
      ...record,
      accessToken: 'of-the-interrupted',
      refreshToken: 'rt-1',
      obtainedAt: new Date().toISOString(),
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
    })
    await rename(path, `${path}.0123456789ab.tmp`)
    await writeFile(path, before, { mode: 0o600 })

    await keyring.lock()
    await start()
    await assert.rejects(async () => access('acme'), { code: 'keychain-unavailable' })
    await keyring.unlock()
    await daemon?.client.post('/daemon/reload')
    assert.equal((await access('acme'))?.accessToken, 'of-the-interrupted')
    assert.equal(provider.refreshes(), 0)
    assert.deepEqual(
      (await filesIn(home.tokens)).filter((name) => name.endsWith('.tmp')),
      [],
    )
  })

  it('keep no daemon from its start while a renewal waits for the provider', async () => {
    await keyring.unlock()
    await store('acme', 'rt-0', 2 * 3_600_000)
    await store('other', 'rt-0')
    const { arrived, release } = provider.hold()
    await start()
    await arrived
    assert.equal((await access('other'))?.accessToken, 'of-before')
    release()
    assert.equal((await access('acme'))?.accessToken, 'at-1')
    await logged(/token files were sealed/)
    assert.ok(isSealed(await read('acme')) && isSealed(await read('other')))
  })

  it('need a new login where the keychain has lost the key', async () => {
    await keyring.unlock()
    await store('acme', 'rt-0')
    await start()
    await logged(/token files were sealed/)
    await daemon?.stop()
    const sealed = await read('acme')
    await keyring.removeKey()
    await start()
    const lost = {
      code: 'token-file-damaged',
      message: `${pathOf('acme')} is sealed with a key that the keychain does not have: the login to acme cannot be read`,
      hint: 'doorward oauth login acme',
    }
    await assert.rejects(async () => access('acme'), lost)
    assert.equal(await read('acme'), sealed)
    // A login makes a new key, which does not open the old file either.
    await daemon?.client.post('/oauth/start', { provider: 'other' })
    await assert.rejects(async () => access('acme'), lost)
    assert.deepEqual(
      (await problems()).map((line) => line.split(':')[0]),
      ['token-file-damaged'],
    )
    assert.equal(await read('acme'), sealed)
    await daemon?.client.delete('/oauth/tokens/acme')
    await assert.rejects(async () => access('acme'), { code: 'not-logged-in' })
  })

  it('do not keep a daemon from its start where the keychain never answers', async () => {
    await keyring.hang()
    await store('acme', 'rt-0')
    const before = performance.now()
    await start()
    assert.ok(performance.now() - before < 15_000)
    assert.equal((await access('acme'))?.accessToken, 'of-before')
    assert.match(
      (await problems()).join('\n'),
      /^keychain-unavailable: (the keychain has not answered yet|no keychain can be reached \(.*\)): new tokens are/,
    )
    assert.equal(await daemon?.stop(), 0)
  })
})

describeOnLinux('the key in the keychain', () => {
  let keyring: Keyring
  before(async () => {
    keyring = await startKeyring()
  })
  after(() => keyring.stop())

  it('is waited for as long as one has patience, and counts whenever it comes', async () => {
    await keyring.unlock()
    const slow = keychainWith(keyring.env, { answer: 60_000, wait: 0 })
    assert.equal(await slow.ask({ mayCreate: true }), false)
    assert.match(slow.problems()[0]?.detail ?? '', /^the keychain has not answered yet: new tokens/)
    const patient = keychainWith(keyring.env)
    assert.equal(await patient.ask({ mayCreate: true }), true)
    const later = keychainWith(keyring.env)
    assert.equal(await later.ask({ mayCreate: false }), true)
    assert.deepEqual(later.open('/x', 'a', patient.seal('a', 'text')), { text: 'text' })
  })

  it('is asked for together by all who want it at the same time', async () => {
    await keyring.unlock()
    await keyring.removeKey()
    const keychain = keychainWith(keyring.env)
    const asked = [false, true, true].map((mayCreate) => keychain.ask({ mayCreate }))
    assert.deepEqual((await Promise.all(asked)).slice(1), [true, true])
  })

  it('is the same for the daemons of two homes that make it at the same moment', async () => {
    await keyring.unlock()
    await keyring.removeKey()
    const [one, other] = [keychainWith(keyring.env), keychainWith(keyring.env)]
    const asked = [one, other].map((keychain) => keychain.ask({ mayCreate: true }))
    assert.deepEqual(await Promise.all(asked), [true, true])
    assert.deepEqual(other.open('/x', 'a', one.seal('a', 'text')), { text: 'text' })
  })

  it('is given up when the keychain takes too long, or the daemon stops', async () => {
    await keyring.hang()
    const keychain = keychainWith(keyring.env, { answer: 300, wait: 60_000 })
    assert.equal(await keychain.ask({ mayCreate: true }), false)
    assert.match(keychain.problems()[0]?.detail ?? '', /^the keychain does not answer: new tokens/)
    const stopped = keychainWith(keyring.env)
    const asked = stopped.ask({ mayCreate: true })
    stopped.close()
    assert.equal(await asked, false)
  })

  it('is missed in words where the package of the keychain is not installed', async () => {
    const folder = await temporaryFolder()
    const program = join(folder, 'helper.cjs')
    await copyFile(fileURLToPath(new URL(keychainProgram, packageFolder)), program)
    const { stdout } = await promisify(execFile)(process.execPath, [program, '--create'])
    assert.equal(stdout, '{"is":"no-package"}')
  })
})
