import assert from 'node:assert/strict'
import { runProcess } from '../../../../daemon/agents/process.ts'
import { parsePatch } from '../../../../daemon/delivery/secrets/change.ts'
import { createInspect, type Inspect } from '../../../../daemon/delivery/secrets/inspect.ts'
import type { SeenCode } from '../../../../daemon/delivery/sender.ts'
import { createGit } from '../../../../daemon/workspace/git.ts'
import { makeSecrets } from '../../../support/made-secrets.ts'
import { type ChangeScene, startChangeScene } from '../../../support/servers/change-scene.ts'
import { temporaryFolder } from '../../../support/temporary.ts'

const secretOf = (kind: string) => makeSecrets().find(([name]) => name === kind)?.[1] ?? ''
const { signal } = new AbortController()
const value = 'correct-horse-battery'

describe('what is about to leave', () => {
  let scene: ChangeScene
  let inspect: Inspect
  before(async () => {
    scene = await startChangeScene()
    inspect = createInspect({
      git: createGit(runProcess, process.env, await temporaryFolder()),
      configured: [{ kind: 'env-value', name: 'the value of STAGING_KEY', value }],
      held: async () => [{ kind: 'login-token', name: 'a token of github', value: 'gho-held-now' }],
    })
  })
  after(() => scene.close())
  const look = async (text: string, more: Partial<Parameters<Inspect>[0]> = {}) =>
    inspect({ eventId: 'evt_1', text, signal, ...more })
  const lookAt = async (files: Parameters<ChangeScene['change']>[0], more = {}) => {
    const { change } = await scene.change(files)
    const { refusal } = await look('Done.', { change, ...more })
    return { told: refusal?.localDetail ?? '', code: refusal?.code, change }
  }
  const isThere = async (change: SeenCode['change']) => {
    if (typeof change !== 'object') return false
    const git = createGit(runProcess, process.env, await temporaryFolder())
    const { gitDir, ref } = change
    return git(['rev-parse', '--verify', ref], { cwd: gitDir, gitDir, signal }).then(
      () => true,
      () => false,
    )
  }

  it('passes as it is where it has no secret', async () => {
    const text = 'Looks good: 3f2c1aa.\n'
    assert.deepEqual(await look(text, { detail: 'cut' }), {
      text,
      detail: 'cut',
      refusal: undefined,
    })
  })

  it('is not hidden by many of a kind that the rule allows', async () => {
    const allowed = Array.from(
      { length: 150 },
      (_, index) => secretOf('jwt').replace(/.$/, String(index % 10)) + ' '.repeat(index + 1),
    )
    const { refusal, text } = await look(`${allowed.join('\n')}\n${secretOf('gitlab-token')}`, {
      allowed: ['jwt'],
    })
    assert.equal(refusal?.code, 'answer-has-secret')
    assert.ok(!text.includes(secretOf('gitlab-token')))
  })

  it('says kind and line of a secret in the answer, never its value, and hides it', async () => {
    const jwt = secretOf('jwt')
    const { text, detail, refusal } = await look(`One.\n${value} ${jwt}\ngho-held-now`, {
      detail: `left out: ${value}`,
    })
    assert.equal(refusal?.code, 'answer-has-secret')
    assert.match(
      refusal.localDetail ?? '',
      /the value of STAGING_KEY \(env-value\) in line 2 of the/,
    )
    assert.match(refusal.localDetail ?? '', /a JWT \(jwt\) in line 2 .*login-token\) in line 3/)
    assert.equal(text, 'One.\n[secret: env-value] [secret: jwt]\n[secret: login-token]')
    assert.equal(detail, 'left out: [secret: env-value]')
    for (const said of [refusal.message, refusal.hint, refusal.localDetail])
      assert.ok(!said?.includes(value) && !said?.includes(jwt) && !said?.includes('gho-held'))
  })

  it('passes the kinds that the rule allows, and no other', async () => {
    const text = `${secretOf('jwt')} ${secretOf('npm-token')}`
    const { refusal } = await look(text, { allowed: ['jwt'] })
    assert.match(refusal?.localDetail ?? '', /npm-token/)
    assert.doesNotMatch(refusal?.localDetail ?? '', /jwt/)
    assert.equal((await look(text, { allowed: ['jwt', 'npm-token'] })).refusal, undefined)
  })

  it('finds secrets in added lines, with the place in the file, and forgets the commit', async () => {
    const { told, change } = await lookAt({ a: `one\ntwo\n${secretOf('stripe-key')}\n` })
    assert.match(told, /a live key of Stripe \(stripe-key\) in line 3 of a$/)
    assert.equal(await isThere(change), false)
    const again = await look('Done.', { change })
    assert.equal(again.refusal, undefined, 'there is nothing left to publish')
  })

  it('finds secrets in names of files, in files with zero bytes, and behind lines that look like a patch', async () => {
    const named = await lookAt({ [`docs/${value}.md`]: 'x\n' })
    assert.match(named.told, /env-value\) in the name of a changed file/)
    assert.ok(!named.told.includes(value))
    const binary = await lookAt({ 'logo.png': `\0\x01${value}` })
    assert.match(binary.told, /in line 1 of logo\.png/)
    const wide = await lookAt({ 'a.txt': Buffer.from(value, 'utf16le').toString('latin1') })
    assert.match(wide.told, /in line 1 of a\.txt/)
    const patch = '++ b/other\n@@ -1,9 +1,9 @@\n-- a/x\n'
    const nested = await lookAt({ 'a "b"\tü.txt': `${patch}${value}\n` })
    assert.match(nested.told, /in line 4 of a "b".*ü\.txt/)
  })

  it('lets secrets be that a change removes, or that stand beside it', async () => {
    const files = { config: `key = ${value}\nport = 1\n`, old: `${value}\n` }
    await scene.server.push(files, { to: 'refs/heads/main' })
    const { code } = await lookAt({ config: `key = ${value}\nport = 2\n`, old: undefined })
    assert.equal(code, undefined)
    const moved = await lookAt({ config: `port = 2\nkey = ${value}!\n` })
    assert.equal(moved.code, 'answer-has-secret')
  })

  it('reads a patch by the counts of its hunks', async () => {
    const patch = [
      'diff --git a/x b/x',
      '--- a/x',
      '+++ b/x',
      '@@ -1 +1,2 @@',
      '--- a/y',
      '+++ b/y',
      '+@@ -9 +9 @@',
      '@@ -5,0 +9 @@',
      '+end',
      String.raw`\ No newline at end of file`,
    ]
    assert.deepEqual(parsePatch(Buffer.from(patch.join('\n'))), [
      { name: 'x', text: '++ b/y\n@@ -9 +9 @@\nend\n', numbers: [1, 2, 9] },
    ])
  })

  it('is cheap for an answer of a usual size', async () => {
    const line =
      'The `retry` in `src/fetch.ts:42` never ends: see 3f2c1aa2b4c5d6e7f8a9b0c1d2e3f4a5b6c7d8e9.\n'
    const text = line.repeat(60)
    await look(text)
    const start = process.cpuUsage()
    for (let time = 0; time < 20; time += 1) await look(text)
    const ms = process.cpuUsage(start).user / 1000 / 20
    if (process.env['SHOW_TIMES']) console.error(`${text.length} characters: ${ms} ms`)
    assert.ok(ms < 50, `${ms} ms`)
  })
})
