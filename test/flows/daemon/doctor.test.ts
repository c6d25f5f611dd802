import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Home, resolveHome } from '../../../shared/home/home.ts'
import { run } from '../../cli/support/cli.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { examined, holdPort } from '../../support/daemon/doctor.ts'
import { untilText } from '../../support/until-text.ts'
import { type HomeFiles, filesIn, temporaryFolder, temporaryHome } from '../../support/temporary.ts'

const good = 'HOOK_SECRET=4f6f1c0d9b7a4e52a9f1c0d9b7a4e52a\n'
const webhooks = (more = '') =>
  `webhooks: [{ path: /a, agent: echo, prompt_template: x, secret_env: HOOK_SECRET${more} }]\n`

const tokenRecord = (provider: string, more: object = {}) => ({
  version: 1,
  provider,
  account: { id: 'U1', name: 'jane.doe@example.com' },
  scopes: ['chat:write'],
  tokenType: 'Bearer',
  accessToken: 'canary-access-token',
  expiresAt: null,
  obtainedAt: new Date().toISOString(),
  clientId: 'id',
  ...more,
})

const writeToken = async (home: Home, provider: string, text: string, mode = 0o600) => {
  await mkdir(home.tokens, { recursive: true, mode: 0o700 })
  await writeFile(join(home.tokens, `${provider}.json`), text, { mode })
}

const homeWith = async (files: HomeFiles = {}) =>
  temporaryHome({ webhooks: webhooks(), env: good, ...files })

describe('doctor in a home where something is wrong', () => {
  it('has nothing to say against one that is well, with a daemon', async () => {
    const daemon = await startDaemon({ webhooks: webhooks(), env: good })
    try {
      const { code, document, of } = await examined(daemon.home)
      assert.deepEqual(
        document.checks
          .filter(({ name }) => name !== 'health')
          .filter(({ status }) => status === 'warning' || status === 'error'),
        [],
      )
      assert.equal(code, 0)
      assert.equal(document.ok, true)
      assert.equal(of('daemon', 'running')[0]?.status, 'ok')
      assert.equal(of('secrets', '/a')[0]?.status, 'ok')
      for (const check of document.checks) assert.notEqual(check.detail, '')
    } finally {
      await daemon.stop()
    }
  })

  it('starts no daemon, writes nothing, and ends with 0 where nothing is red', async () => {
    const home = await homeWith()
    const before = await filesIn(home.root)
    const { code, of } = await examined(home)
    assert.equal(code, 0)
    assert.equal(of('daemon', 'running')[0]?.status, 'warning')
    assert.deepEqual(await filesIn(home.root), before)
    for (const group of ['agents', 'logins', 'targets', 'tunnel'] as const)
      assert.deepEqual(
        of(group).map(({ status, detail }) => [status, detail]),
        [['skipped', 'only a running daemon can check this']],
      )
    const none = resolveHome(join(await temporaryFolder(), 'none'))
    const fresh = await examined(none)
    assert.equal(fresh.code, 0)
    assert.equal(fresh.of('home')[0]?.hint, 'doorward init')
  })

  it('names a .env that others can read, with the chmod that mends it', async () => {
    const home = await homeWith()
    await chmod(home.env, 0o644)
    const { code, of } = await examined(home)
    assert.equal(code, 1)
    const [check] = of('home', '.env')
    assert.match(check?.detail ?? '', /open to other users \(mode 644\)/)
    assert.match(check?.hint ?? '', /^chmod 600 /)
    assert.equal(of('secrets', '.env')[0]?.status, 'error')
    assert.equal(of('configuration')[0]?.status, 'ok')
  })

  it('still says which secrets are unset while .env is not used', async () => {
    const home = await homeWith({ env: 'OTHER=4f6f1c0d9b7a4e52a9f1\n' })
    await chmod(home.env, 0o644)
    const unset = await examined(home)
    assert.equal(unset.of('secrets', '.env')[0]?.status, 'error')
    assert.equal(unset.of('secrets', '/a')[0]?.status, 'error')
    assert.match(unset.of('secrets', '/a')[0]?.detail ?? '', /HOOK_SECRET is unset or empty/)
    await writeFile(home.env, good, { mode: 0o644 })
    const set = await examined(home)
    assert.equal(set.of('secrets', '/a')[0]?.status, 'skipped')
    await writeFile(
      join(home.config, 'webhooks.yaml'),
      'webhooks:\n  - { path: /open, agent: echo, prompt_template: x }\n',
    )
    const open = await examined(home)
    assert.ok(open.of('secrets').some(({ detail }) => detail.startsWith('it has no secret_env')))
    assert.doesNotMatch(set.stdout, /4f6f1c0d/)
  })

  it('names every problem of the configuration with its place', async () => {
    const home = await homeWith({
      webhooks: 'webhooks:\n  - { path: /a, agent: eco, prompt_template: x, pth: 1 }\n',
      gateway: 'server: { port: banana }\n',
    })
    const { code, of } = await examined(home)
    assert.equal(code, 1)
    const details = of('configuration').map(({ detail }) => detail)
    assert.ok(
      details.some((text) => /gateway\.yaml:1:11 server\.port/.test(text)),
      details.join(),
    )
    assert.ok(details.some((text) => /webhooks\.yaml:2:.*unknown agent "eco"/.test(text)))
  })

  const secrets: readonly (readonly [string, string, RegExp])[] = [
    ['has a line break at its end', 'HOOK_SECRET="4f6f1c0d9b7a4e52a9f1\n"\n', /white space/],
    ['is unset', '', /unset or empty; its deliveries are answered 503/],
    ['is a placeholder', 'HOOK_SECRET=changeme\n', /placeholder/],
  ]
  for (const [title, env, detail] of secrets)
    it(`says that a secret ${title}`, async () => {
      const { code, of } = await examined(await homeWith({ env }))
      assert.equal(code, 1)
      assert.match(of('secrets', '/a')[0]?.detail ?? '', detail)
    })

  it('only warns of a secret that is short, and of a webhook without one', async () => {
    const { code, of } = await examined(
      await homeWith({
        env: 'HOOK_SECRET=aB3dE5gH\n',
        webhooks: `${webhooks().trimEnd().slice(0, -1)}, { path: /open, agent: echo, prompt_template: x }]\n`,
      }),
    )
    assert.equal(code, 0)
    assert.deepEqual(
      of('secrets').map(({ status }) => status),
      ['warning', 'warning'],
    )
  })

  it('names the program that holds the port', async () => {
    const holder = await holdPort()
    try {
      const env = { DOORWARD_PORT: String(holder.port) }
      const { code, of } = await examined(await homeWith(), env)
      assert.equal(code, 1)
      const [check] = of('ports', 'main')
      assert.equal(check?.status, 'error')
      if (process.platform === 'linux') assert.match(check.detail, new RegExp(`pid ${holder.pid}`))
      assert.match(check.hint ?? '', new RegExp(`server\\.port: ${holder.port + 1}`))
      const gateway = `oauth: { callback_port: ${holder.port} }\n`
      const callback = (await examined(await homeWith({ gateway }))).of('ports', 'callback')
      assert.match(callback[0]?.detail ?? '', /logins cannot return there/)
    } finally {
      await holder.end()
    }
  })

  it('says which agent has no program, no folder, no key, no server', async () => {
    const folder = await temporaryFolder()
    const program = async (name: string, script: string) => {
      await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o700 })
    }
    await program('claude', 'echo "1.2.3 (Claude Code)"')
    await program('codex', 'exit 7')
    await program('llm', 'sleep 60')
    const names = ['works', 'fails', 'hangs', 'missing', 'homeless', 'in-file', 'keyless', 'absent']
    const daemon = await startDaemon({
      env: good,
      variables: { PATH: `${folder}:/usr/bin:/bin` },
      agents: `agents:
  works: { kind: claude }
  fails: { kind: codex }
  hangs: { kind: llm }
  missing: { kind: opencode }
  homeless: { kind: claude, cwd: ${folder}/none }
  in-file: { kind: claude, cwd: ${folder}/claude }
  keyless: { kind: openai, base_url: "http://127.0.0.1:9/v1", model: m, api_key_env: NO_KEY }
  absent: { kind: command, command: [${folder}/absent] }
`,
      webhooks: `webhooks:\n${names
        .map(
          (name) =>
            `  - { path: /${name}, agent: ${name}, prompt_template: x, secret_env: HOOK_SECRET }`,
        )
        .join('\n')}\n`,
    })
    const { code, of, document } = await examined(daemon.home)
    await daemon.stop()
    assert.equal(code, 1)
    assert.match(of('agents', 'works')[0]?.detail ?? '', /claude \(1\.2\.3 \(Claude Code\)\)$/)
    assert.match(of('agents', 'fails')[0]?.detail ?? '', /exited with code 7/)
    assert.equal(of('agents', 'hangs')[0]?.status, 'warning')
    assert.match(of('agents', 'missing')[0]?.hint ?? '', /npm install -g opencode-ai/)
    assert.match(of('agents', 'homeless')[0]?.hint ?? '', /^mkdir -p /)
    assert.match(of('agents', 'in-file')[0]?.hint ?? '', /^name a folder: /)
    assert.deepEqual(
      of('agents', 'keyless').map(({ status }) => status),
      ['error', 'error'],
    )
    assert.match(of('agents', 'absent')[0]?.detail ?? '', /missing, or not executable/)
    assert.equal(document.ok, false)
  }).timeout(20_000)

  it('tells a login that is over, a file that is damaged and one that others can read', async () => {
    const home = await homeWith({
      webhooks: webhooks(', deliver_to: ["slack:#a", "github:a/b#1"]'),
    })
    const past = '2026-01-01T00:00:00.000Z'
    const token = (provider: string, more: object) => JSON.stringify(tokenRecord(provider, more))
    await writeToken(home, 'slack', token('slack', { scopes: ['channels:read'] }))
    await writeToken(home, 'expired', token('expired', { expiresAt: past }))
    await writeToken(home, 'ended', token('ended', { ended: { at: past, cause: 'revoked there' } }))
    const daemon = await startDaemon({ home })
    await writeToken(home, 'damaged', '{"version": 1, "accessToken": "canary-acc')
    await writeToken(home, 'open', token('open', {}), 0o644)
    const { code, stdout, of } = await examined(home)
    const text = await run(['doctor'], { home })
    await daemon.stop()
    assert.equal(code, 1)
    assert.match(of('logins', 'slack scopes')[0]?.detail ?? '', /chat:write/)
    assert.equal(of('logins', 'expired')[0]?.hint, 'doorward oauth login expired')
    assert.match(of('logins', 'damaged')[0]?.detail ?? '', /damaged/)
    assert.match(of('logins', 'ended')[0]?.detail ?? '', /revoked there/)
    assert.equal(of('logins', 'open')[0]?.status, 'skipped')
    assert.match(of('home', 'tokens/open.json')[0]?.hint ?? '', /^chmod 600/)
    assert.match(of('logins', 'github')[0]?.detail ?? '', /not logged in, which target github/)
    assert.doesNotMatch(stdout, /canary|jane|4f6f1c0d/)
    assert.doesNotMatch(text.stdout, /canary|jane|4f6f1c0d/)
  })

  it('sees that a daemon was killed', async () => {
    const home = await homeWith()
    const daemon = await startDaemon({ home })
    await untilText(home.logs, 'daemon.log', /"listening"/)
    daemon.client.close()
    const gone = new Promise((resolve) => daemon.process.once('exit', resolve))
    daemon.process.kill('SIGKILL')
    await gone
    const { code, of } = await examined(home)
    assert.equal(code, 1)
    assert.match(of('daemon', 'running')[0]?.detail ?? '', /killed or crashed/)
    assert.match(of('daemon', 'crashes')[0]?.detail ?? '', /once in the last 24 hours/)
  })

  it('advises to kill no process that only has the pid of a daemon that was killed', async () => {
    const home = await homeWith()
    const daemon = await startDaemon({ home })
    daemon.client.close()
    const gone = new Promise((resolve) => daemon.process.once('exit', resolve))
    daemon.process.kill('SIGKILL')
    await gone
    const file = JSON.parse(await readFile(home.daemonJson, 'utf8')) as object
    // This process runs, and is no daemon.
    await writeFile(home.daemonJson, JSON.stringify({ ...file, pid: process.pid }))
    const withToken = await examined(home)
    await rm(home.apiToken)
    const withoutToken = await examined(home)
    for (const { code, of, stdout } of [withToken, withoutToken]) {
      assert.equal(code, 1)
      const [running] = of('daemon', 'running')
      assert.match(running?.detail ?? '', /killed or crashed: .* is another program now/)
      assert.equal(running?.hint, 'doorward daemon start')
      assert.doesNotMatch(stdout, /kill (-9 )?\d/)
    }
    const status = await run(['daemon', 'status'], { home })
    assert.doesNotMatch(`${status.stdout}${status.stderr}`, /kill/)
    assert.equal((await run(['daemon', 'start'], { home })).code, 0)
    assert.equal((await run(['daemon', 'stop'], { home })).code, 0)
  })

  it('waits for no daemon that hangs', async () => {
    const daemon = await startDaemon({ webhooks: webhooks(), env: good })
    daemon.process.kill('SIGSTOP')
    try {
      const { code, of } = await examined(daemon.home)
      assert.equal(code, 1)
      assert.match(of('daemon', 'running')[0]?.detail ?? '', /did not answer within 2 s/)
      assert.equal(of('daemon', 'crashes')[0]?.status, 'ok')
    } finally {
      daemon.process.kill('SIGCONT')
      await daemon.stop()
    }
  })

  it('finds a link in the place of a secret, and ends though a folder is closed', async () => {
    const home = await homeWith()
    const elsewhere = join(await temporaryFolder(), 'env')
    await writeFile(elsewhere, good, { mode: 0o600 })
    await rm(home.env)
    await symlink(elsewhere, home.env)
    await mkdir(home.run, { mode: 0o755 })
    const { code, of } = await examined(home)
    assert.equal(code, 1)
    assert.match(of('home', '.env')[0]?.detail ?? '', /is a link/)
    assert.match(of('home', 'run')[0]?.hint ?? '', /^chmod 700/)
  })

  it('asks nobody without --online, and finds the folder of a file target missing', async () => {
    const daemon = await startDaemon({
      env: good,
      gateway:
        'server: { public_url: "https://doorward.invalid" }\ntargets: { slack: { token_env: HOOK_SECRET } }\n',
      webhooks: webhooks(', deliver_to: ["slack:#a", "file:/no-such-folder/{{event.x}}.md"]'),
    })
    const { code, of } = await examined(daemon.home)
    await daemon.stop()
    assert.equal(code, 1)
    assert.match(of('targets', 'slack')[0]?.detail ?? '', /only --online/)
    assert.equal(of('tunnel')[0]?.status, 'skipped')
    const [check, ...others] = of('targets', 'file')
    assert.deepEqual([check?.status, others], ['error', []])
    assert.match(check?.detail ?? '', /the folder \/no-such-folder does not exist/)
  })

  it('checks with the configuration that the daemon uses while the files are broken', async () => {
    const daemon = await startDaemon({
      agents: 'agents: { codex: { kind: codex, args: [--full-auto] } }\n',
      webhooks:
        'webhooks: [{ path: /open-7f3, agent: codex, prompt_template: "{{event.x}}", deliver_to: "slack:#board" }]\n',
    })
    await writeFile(join(daemon.home.config, 'webhooks.yaml'), 'webhooks: [\n')
    const { code, of, stdout } = await examined(daemon.home)
    await daemon.stop()
    const [risk] = of('agents', 'permissions')
    assert.match(risk?.detail ?? '', /<unsigned webhook> .*\(slack:<target>\)/)
    assert.doesNotMatch(stdout, /open-7f3|#board/)
    assert.deepEqual([code, of('configuration')[0]?.status], [1, 'error'])
    assert.equal(of('secrets')[0]?.status, 'skipped')
  })

  it('takes names of webhooks for the privacy check only', async () => {
    const { code, stderr } = await run(['doctor', '/a'], { home: await homeWith() })
    assert.equal(code, 2)
    assert.match(stderr, /hint: doorward doctor --privacy \/a/)
  })
})
