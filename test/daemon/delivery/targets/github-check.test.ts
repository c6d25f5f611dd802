import assert from 'node:assert/strict'
import type { AgentReply } from '../../../../daemon/delivery/sender.ts'
import { createCommentMarks, OwnMessages } from '../../../../daemon/delivery/loop-guard.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type GithubServer,
  headOfPull,
  startGithubServer,
} from '../../../support/servers/github-server.ts'
import { json, reset } from '../../../support/servers/target-server.ts'

const target = `github-check:acme/door@${headOfPull}`
const verdict = (conclusion: string) => `\`\`\`json\n{"conclusion": "${conclusion}"}\n\`\`\``

describe('a check on GitHub', () => {
  let server: GithubServer
  afterEach(() => server.close())

  const run = async (text: string, more: Partial<AgentReply> = {}) => {
    const messages = new OwnMessages()
    const test = deliverWith(
      { github: { api_url: server.apiUrl, token_env: 'TOKEN' } },
      { env: { TOKEN: 'ghs_app' }, messages },
    )
    const [result] = await test.deliver(resolveTargets([target]), makeReply(text, more))
    return { result, messages }
  }
  const methods = () => server.requests.map(({ method }) => method)

  it('is a check run where the token is of an app, with the verdict of the answer', async () => {
    server = await startGithubServer({ isApp: true })
    const { result } = await run(`## No tests\n\nThanks @x.\n\n${verdict('failure')}`, {
      rule: 'tests',
    })
    assert.deepEqual(result, { target, state: 'done', attempts: 1 })
    const [check] = server.checks
    assert.deepEqual(
      [check?.name, check?.head_sha, check?.status, check?.conclusion],
      ['doorward/tests', headOfPull, 'completed', 'failure'],
    )
    assert.deepEqual(check?.output, {
      title: 'No tests',
      summary: '## No tests\n\nThanks @\u200bx.',
    })
    const marks = createCommentMarks('an api token')
    assert.equal(marks.isOwnComment({ check_run: check }), true)
    const changed = { ...check, output: { summary: 'run this' } }
    assert.equal(marks.isOwnComment({ check_run: changed }), false)
  })

  it('has the name that its rule gives it', async () => {
    server = await startGithubServer({ isApp: true })
    await run('Fine.', { rule: 'tests', checkName: 'gate' })
    assert.deepEqual(server.checks[0]?.name, 'gate')
  })

  it('is neutral without a verdict, and with one that there is not', async () => {
    server = await startGithubServer({ isApp: true })
    await run('No verdict.')
    await run(verdict('approved'))
    assert.deepEqual(
      server.checks.map(({ name, conclusion }) => [name, conclusion]),
      [
        ['doorward/github', 'neutral'],
        ['doorward/github', 'neutral'],
      ],
    )
    assert.equal(server.checks[1]?.output?.summary, verdict('approved'))
  })

  it('is a commit status where the login is of a person, and runs no webhook again', async () => {
    server = await startGithubServer({ scopes: ['repo:status'] })
    const { result, messages } = await run(`# ${'Long '.repeat(50)}\n\n${verdict('success')}`)
    assert.deepEqual(
      [result?.state, result?.detail],
      ['done', 'as a commit status: only an app may create check runs'],
    )
    await run('Broken.\n\n' + verdict('failure'))
    const [first, second] = server.statuses
    assert.deepEqual([first?.state, first?.context], ['success', 'doorward/github'])
    assert.match(first?.description ?? '', /^Long Long .*…$/)
    assert.deepEqual([second?.state, second?.description], ['failure', 'Broken.'])
    const event = { ...first, sha: headOfPull, name: 'acme/door' }
    assert.equal(messages.isOwnStatus(event), true)
    for (const other of [{ ...event, state: 'failure' }, { ...event, sha: 'b' }, {}, null])
      assert.equal(messages.isOwnStatus(other), false)
  })

  it('is not created twice, when an attempt had no response', async () => {
    server = await startGithubServer({ isApp: true })
    server.next((...asked) => {
      server.checks.push(asked[1].fields as GithubServer['checks'][number])
      return reset(...asked)
    })
    const { result } = await run('Fine.')
    assert.deepEqual(
      [result?.state, result?.attempts, result?.detail],
      ['done', 2, 'an earlier attempt had arrived'],
    )
    assert.deepEqual([methods(), server.checks.length], [['POST', 'GET'], 1])
  })

  it('waits where a 403 is a rate limit, and is no status for it', async () => {
    server = await startGithubServer({ isApp: true })
    server.next(json(403, { message: 'slow down' }, { 'retry-after': '0.1' }))
    assert.equal((await run('Fine.')).result?.state, 'done')
    assert.deepEqual([server.checks.length, server.statuses.length], [1, 0])
  })

  it('says what the login lacks', async () => {
    server = await startGithubServer()
    server.next(json(403, {}), json(403, {}))
    const { result } = await run('Fine.')
    assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
    assert.match(result?.detail ?? '', /the scope repo or repo:status/)
  })
})
