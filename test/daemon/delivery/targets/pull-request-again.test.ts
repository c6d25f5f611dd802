import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toPullBody } from '../../../../daemon/delivery/changes/own-pulls.ts'
import { createCommentMarks } from '../../../../daemon/delivery/loop-guard.ts'
import {
  type ChangeScene,
  startChangeScene,
  toEventId,
} from '../../../support/servers/change-scene.ts'
import { makeReply } from '../../../support/servers/deliver.ts'
import { json, reset } from '../../../support/servers/target-server.ts'

const subject = { key: 'SHOP-1', kind: 'error', title: 'SHOP-1', url: 'https://sentry.io/1' }
const stranger = { login: 'mallory', id: 666, type: 'User' }

describe('a pull request of a rule whose subject has one already', () => {
  let scene: ChangeScene
  beforeEach(async () => {
    scene = await startChangeScene()
  })
  afterEach(() => scene.close())

  let events = 0
  const run = async (
    files: Parameters<ChangeScene['change']>[0],
    { text = 'A fix', ref = 'main', rule = 'fix', about = subject, maxAttempts = 9 } = {},
  ) => {
    events += 1
    const eventId = toEventId(events)
    const code = await scene.change(files, ref)
    const publish = { maxAttempts: maxAttempts === 0 ? undefined : maxAttempts }
    const { result } = await scene.deliver(code, { eventId, rule, subject: about, text, publish })
    return result
  }
  const branchOf = (place = 0) => scene.github.pulls[place]?.head ?? ''
  const show = async (path: string, place = 0) => scene.served('show', `${branchOf(place)}:${path}`)
  const shown = (place = 0) => scene.github.pulls[place]?.body?.replaceAll(/<!--.*-->\n/g, '')

  it('has a branch of the rule and the subject, and a mark', async () => {
    await run({ a: 'one\n' })
    assert.match(branchOf(), /^doorward\/fix-[0-9a-f]{10}$/)
    assert.match(
      scene.github.pulls[0]?.body ?? '',
      /^<!-- doorward:evt_\S+ .*-->\n<!-- doorward-key:/,
    )
    assert.equal(shown(), 'A fix')
    await run({ a: 'one\n' }, { rule: 'other' })
    await run({ a: 'one\n' }, { about: { ...subject, key: 'SHOP-2' } })
    assert.equal(new Set(scene.github.pulls.map(({ head }) => head)).size, 3)
  })

  it('is of its event alone, where that is about nothing in particular', async () => {
    const about = { ...subject, kind: 'event', key: 'event_alert.triggered' }
    await run({ a: 'one\n' }, { about })
    await run({ a: 'two\n' }, { about })
    assert.equal(scene.github.pulls.length, 2)
    assert.match(branchOf(1), /^doorward\/evt_/)
  })

  it('gets a commit on top, and the newer text', async () => {
    await run({ a: 'one\n' })
    const first = await scene.served('rev-parse', branchOf())
    const result = await run({ b: 'two\n' }, { text: 'Another fix' })
    assert.deepEqual([result?.state, result?.detail], ['done', 'pull request #8, updated'])
    assert.equal(scene.github.pulls.length, 1)
    assert.deepEqual([await show('a'), await show('b'), shown()], ['one', 'two', 'Another fix'])
    assert.equal(await scene.served('rev-parse', `${branchOf()}^`), first)
  })

  it('gets it also where a person has pushed, or the agent saw the branch itself', async () => {
    await run({ a: 'one\n' })
    await scene.server.git('fetch', '--quiet', 'origin')
    await scene.server.git('checkout', '--quiet', branchOf())
    const theirs = await scene.server.push({ c: 'of Ada\n' }, { to: `refs/heads/${branchOf()}` })
    await run({ b: 'two\n' })
    assert.deepEqual([await show('b'), await show('c')], ['two', 'of Ada'])
    assert.equal(await scene.served('rev-parse', `${branchOf()}^`), theirs)
    await run({ c: 'of both\n' }, { ref: branchOf() })
    assert.equal(await show('c'), 'of both')
    assert.equal(scene.github.pulls.length, 1)
  })

  it('is left alone by a change that does not merge, and says so', async () => {
    await run({ 'hello.txt': 'one\n' })
    const first = await scene.served('rev-parse', branchOf())
    const result = await run({ 'hello.txt': 'two\n' }, { text: 'Another' })
    assert.match(
      result?.detail ?? '',
      /has other commits than the agent saw, and the change does not merge with them \(merge or close/,
    )
    assert.equal(await scene.served('rev-parse', branchOf()), first)
    assert.equal(shown(), 'A fix')
  })

  it('gets no second commit for the same change, also of a repeated attempt', async () => {
    await run({ a: 'one\n' })
    const first = await scene.served('rev-parse', branchOf())
    const same = await run({ a: 'one\n' })
    assert.equal(same?.detail, 'pull request #8, which has this change already')
    assert.equal(await scene.served('rev-parse', branchOf()), first)
    // The answer to the second text is lost.
    const pulls = json(200, [
      {
        number: 8,
        state: 'open',
        body: scene.github.pulls[0]?.body,
        user: { id: 583_231 },
        head: { sha: first, repo: { full_name: 'acme/door' } },
      },
    ])
    scene.github.next(pulls, json(200, { login: 'octocat', id: 583_231 }), reset)
    const result = await run({ b: 'two\n' }, { text: 'Another' })
    assert.deepEqual([result?.state, result?.attempts], ['done', 2])
    assert.equal(await scene.served('rev-parse', `${branchOf()}^`), first)
    assert.equal(shown(), 'Another')
  })

  it('keeps the words that a person wrote into its text', async () => {
    await run({ a: 'one\n' })
    const [pull] = scene.github.pulls
    assert.ok(pull)
    pull.body += '\nReviewed by Ada.'
    const result = await run({ b: 'two\n' }, { text: 'Another' })
    assert.equal(result?.detail, 'pull request #8, updated; someone changed its text, which stays')
    assert.match(shown() ?? '', /^A fix\nReviewed by Ada\.$/)
  })

  it('is not one of another account, even with all its words', async () => {
    await run({ a: 'one\n' })
    const [pull] = scene.github.pulls
    assert.ok(pull)
    pull.user = stranger
    const first = await scene.served('rev-parse', branchOf())
    const result = await run({ b: 'two\n' })
    assert.match(result?.detail ?? '', /a pull request that doorward did not open/)
    assert.equal(await scene.served('rev-parse', branchOf()), first)
  })

  it('is a new one on another branch, when the earlier was closed or merged', async () => {
    await run({ a: 'one\n' })
    const [pull] = scene.github.pulls
    assert.ok(pull)
    pull.state = 'closed'
    await run({ b: 'two\n' })
    assert.equal(branchOf(1), `${branchOf()}-2`)
    assert.equal((await run({ c: 'three\n' }))?.detail, 'pull request #9, updated')
  })

  it('closes the issue that the event is about, in the same repository alone', async () => {
    const url = `${scene.server.origin}/acme/door/issues/12`
    await run({ a: 'one\n' }, { about: { ...subject, url } })
    assert.equal(shown(), 'A fix\n\nFixes #12')
    const repository = `${scene.server.origin}/acme/door`
    const marks = createCommentMarks('an api token')
    for (const other of [
      `${scene.server.origin}/acme/other/issues/12`,
      `${repository}/issues/12x`,
      'https://gitlab.com/acme/door/issues/12',
    ]) {
      const reply = makeReply('', { subject: { ...subject, url: other } })
      assert.equal(toPullBody(reply, 'A fix', undefined, repository, marks).body, 'A fix')
    }
  })

  it('is not pushed to more often than max_attempts, and asks a person there once', async () => {
    const usual = { maxAttempts: 0 }
    await run({ a: 'one\n' }, usual)
    await run({ b: 'two\n' }, usual)
    const last = await scene.served('rev-parse', branchOf())
    const refused = 'nothing was pushed: max_attempts is 2, and this rule has pushed as often'
    for (const said of ['asks a person', 'has asked a person']) {
      const result = await run({ c: 'three\n' }, usual)
      assert.equal(result?.state, 'done')
      assert.ok(result.detail?.startsWith(refused))
      assert.ok(result.detail?.endsWith(`; a comment at #8 ${said}`))
    }
    assert.equal(scene.github.comments.length, 1)
    assert.match(
      scene.github.comments[0]?.body ?? '',
      /2 changes for this within 30 days, and pushes/,
    )
    assert.equal(await scene.served('rev-parse', branchOf()), last)
    // Another subject, or a higher limit, goes on.
    await run({ c: 'three\n' }, { ...usual, about: { ...subject, key: 'SHOP-2' } })
    assert.equal((await run({ c: 'x\n' }, { maxAttempts: 3 }))?.detail, 'pull request #8, updated')
  })

  it('counts for 30 days over restarts, by hashes in a file of the owner alone', async () => {
    await run({ a: 'one\n' })
    const path = join(scene.home, 'attempts')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    const line = await readFile(path, 'utf8')
    assert.match(line, /^[\w-]{43} evt_\d{18} \d{13}\n$/)
    const old = Date.now() - 31 * 24 * 3_600_000
    await writeFile(path, line.replace(/\d+\n$/, `${old}\n`), { mode: 0o600 })
    assert.equal(
      (await run({ b: 'two\n' }, { maxAttempts: 1 }))?.detail,
      'pull request #8, updated',
    )
    assert.match((await run({ c: 'x\n' }, { maxAttempts: 1 }))?.detail ?? '', /nothing was pushed/)
  })

  it('may not get by a merge what its rule does not allow', async () => {
    await scene.server.push({ 'src/one': '1\n2\n3\n', 'src/two': 'x\ny\nz\n' })
    const code = { ref: 'main' }
    await run({ 'src/two': 'x\ny\nz\nmore\n' }, code)
    await scene.server.git('fetch', '--quiet', 'origin')
    await scene.server.git('checkout', '--quiet', branchOf())
    await scene.server.git('mv', 'src', '.husky')
    await scene.server.push({}, { to: `refs/heads/${branchOf()}` })
    const result = await run({ 'src/one': '1\n2\n3\n4\n' }, code)
    assert.match(result?.detail ?? '', /does not allow: \.husky\/one/)
  })
})
