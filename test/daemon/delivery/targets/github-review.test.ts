import assert from 'node:assert/strict'
import type { AgentReply } from '../../../../daemon/delivery/sender.ts'
import { createCommentMarks } from '../../../../daemon/delivery/loop-guard.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type GithubServer,
  headOfPull,
  startGithubServer,
} from '../../../support/servers/github-server.ts'
import { json, reset } from '../../../support/servers/target-server.ts'

const target = 'github-review:acme/door#7'
const patch = '@@ -1,2 +1,3 @@\n one\n-two\n+TWO\n+more'
const answer = (...comments: readonly object[]) =>
  `Looks good.\n\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``
const fits = { path: 'src/a.ts', line: 2, side: 'RIGHT', body: 'Thanks @octocat: why?' }
const misses = { path: 'src/a.ts', line: 9, side: 'RIGHT', body: 'Not in the diff.' }

describe('a review on GitHub', () => {
  let server: GithubServer
  beforeEach(async () => {
    server = await startGithubServer()
    server.pull.files.push({ filename: 'src/a.ts', status: 'modified', patch })
  })
  afterEach(() => server.close())

  const run = async (text: string, more: Partial<AgentReply> = {}) => {
    const test = deliverWith(
      { github: { api_url: server.apiUrl } },
      { tokens: { github: ['gho_first'] } },
    )
    const [result] = await test.deliver(resolveTargets([target]), makeReply(text, more))
    return { result, ...test }
  }
  const methods = () => server.requests.map(({ method, path }) => `${method} ${path.slice(23)}`)
  const withoutMark = (body = '') =>
    body.replace(/^<!-- doorward:[^>]*-->\n(<!-- doorward-key:[^>]*-->\n)?/, '')

  it('has the answer as its text and comments on lines, and mentions no one', async () => {
    const { result } = await run(
      answer(fits, { path: 'src/a.ts', line: 2, side: 'LEFT', body: 'Gone?' }),
    )
    assert.deepEqual(result, { target, state: 'done', attempts: 1 })
    const [review] = server.reviews
    assert.equal(review?.event, 'COMMENT')
    assert.equal(withoutMark(review.body), 'Looks good.')
    assert.deepEqual(
      review.comments?.map((one) => ({ ...one, body: withoutMark(one.body) })),
      [
        { ...fits, body: 'Thanks @\u200boctocat: why?' },
        { path: 'src/a.ts', line: 2, side: 'LEFT', body: 'Gone?' },
      ],
    )
    assert.equal(server.requests[0]?.headers.authorization, 'Bearer gho_first')
  })

  it('asks for no diff when there are no comments', async () => {
    assert.equal((await run('Looks good.')).result?.state, 'done')
    assert.deepEqual(methods(), [
      'GET /pulls/7/reviews?&per_page=100&page=1',
      'POST /pulls/7/reviews',
    ])
    assert.deepEqual(server.reviews[0]?.comments, [])
  })

  it('shows in its text what does not fit the diff', async () => {
    const { result } = await run(answer(fits, misses, { path: 'b`\n@x', body: 'No such file.' }))
    assert.equal(
      result?.detail,
      '2 of 3 comments do not fit the diff: they are in the text of the review',
    )
    assert.equal(server.reviews[0]?.comments?.length, 1)
    assert.equal(
      withoutMark(server.reviews[0].body),
      'Looks good.\n\n`src/a.ts`, line 9:\n\nNot in the diff.\n\n`b  @x`:\n\nNo such file.',
    )
  })

  it('is text alone for an empty diff, a binary file and a block that cannot be read', async () => {
    server.pull.files.splice(0)
    assert.match((await run(answer(fits))).result?.detail ?? '', /^1 of 1 comments do not fit/)
    server.pull.files.push({ filename: 'src/a.ts', status: 'modified' })
    assert.match((await run(answer(fits))).result?.detail ?? '', /^1 of 1 comments do not fit/)
    const broken = 'Fine.\n```json\n{"comments": [\n```'
    assert.match((await run(broken)).result?.detail ?? '', /cannot be read/)
    assert.deepEqual(
      server.reviews.map(({ comments, body }) => [
        comments,
        withoutMark(body).includes('src/a.ts'),
      ]),
      [
        [[], true],
        [[], true],
        [[], false],
      ],
    )
    assert.equal(withoutMark(server.reviews[2]?.body), 'Fine.')
  })

  it('suggests for several lines of one hunk, and shows plain code for lines of two', async () => {
    const body = 'Simplify:\n```suggestion\n@two // #2\n```'
    const file = server.pull.files[0]
    assert.ok(file)
    server.pull.files.splice(0, 1, { ...file, patch: `${patch}\n@@ -20 +21 @@\n-x\n+y` })
    const several = { path: 'src/a.ts', start_line: 1, line: 2, side: 'RIGHT', body }
    const { result } = await run(answer(several, { ...several, start_line: 3, line: 21 }))
    assert.deepEqual([result?.state, result?.detail], ['done', undefined])
    assert.deepEqual(
      server.reviews[0]?.comments?.map((one) => ({ ...one, body: withoutMark(one.body) })),
      [
        { ...several, start_side: 'RIGHT' },
        {
          path: 'src/a.ts',
          line: 21,
          side: 'RIGHT',
          body: `lines 3 to 21:\n\n${body.replace('suggestion', '')}`,
        },
      ],
    )
  })

  it('finds a file by its path with a prefix, among those of all pages', async () => {
    server.pull.files.unshift(
      ...Array.from({ length: 120 }, (_, index) => ({
        filename: `f${index}`,
        status: 'added' as const,
      })),
    )
    const { result } = await run(answer({ ...fits, path: 'b/src/a.ts' }))
    assert.equal(result?.detail, undefined)
    assert.equal(server.reviews[0]?.comments?.[0]?.path, 'src/a.ts')
  })

  it('finds the diff of a file among many', async () => {
    const others = Array.from({ length: 250 }, (_, index) => ({
      filename: `f${index}`,
      status: 'added' as const,
      patch: '@@ -0,0 +1 @@\n+x',
    }))
    server.pull.files.unshift(...others)
    assert.equal((await run(answer(fits))).result?.detail, undefined)
    assert.equal(methods().length, 5)
  })

  it('is of the commit that the agent saw, and text alone when the pull request has moved on', async () => {
    assert.equal(
      (await run(answer(fits), { code: { head: headOfPull } })).result?.detail,
      undefined,
    )
    assert.equal(server.reviews[0]?.commit_id, headOfPull)
    const { result } = await run(answer(fits), { code: { head: 'b'.repeat(40) } })
    assert.match(result?.detail ?? '', /1 of 1 comments are on an older state/)
    assert.deepEqual(server.reviews[1]?.comments, [])
    assert.equal(server.reviews[1].commit_id, undefined)
  })

  it('is text alone when GitHub refuses its lines after all', async () => {
    server.next(
      json(200, [
        { filename: 'src/a.ts', patch: '@@ -1 +1,9 @@\n+1\n+2\n+3\n+4\n+5\n+6\n+7\n+8\n+9' },
      ]),
    )
    const { result } = await run(answer(fits, misses))
    assert.match(result?.detail ?? '', /^2 of 2 comments do not fit/)
    assert.deepEqual(server.reviews[0]?.comments, [])
    assert.equal(server.reviews.length, 1)
  })

  it('is not posted twice, when an attempt had no response', async () => {
    let arrived = ''
    server.next(
      json(200, []),
      (...asked) => {
        arrived = String(asked[1].fields['body'])
        return reset(...asked)
      },
      (...asked) => json(200, [{ body: 'x' }, { body: arrived }])(...asked),
    )
    const { result } = await run('Looks good.')
    assert.deepEqual(
      [result?.state, result?.attempts, result?.detail],
      ['done', 2, 'an earlier attempt had arrived'],
    )
    server.next(reset)
    assert.equal((await run('Another one.')).result?.state, 'done')
    assert.equal(server.reviews.length, 1)
  })

  it('is not posted when the answer has neither words nor comments', async () => {
    const { result } = await run('```json\n{"comments": []}\n```')
    assert.match(result?.detail ?? '', /nothing was posted/)
    assert.equal(server.requests.length, 0)
  })

  it('is not posted by a login without the scope, which the event says', async () => {
    server.close()
    server = await startGithubServer({ scopes: ['read:user'] })
    const { result } = await run('Looks good.')
    assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
    assert.match(result?.detail ?? '', /may not see it \(scope repo\)/)
    server.next(json(403, { message: 'Resource not accessible by integration' }))
    assert.match((await run('x')).result?.detail ?? '', /needs the scope repo/)
  })

  it('runs no webhook again, nor do its comments', async () => {
    await run(answer(fits))
    const marks = createCommentMarks('an api token')
    const [review] = server.reviews
    assert.equal(marks.isOwnComment({ review: { body: review?.body } }), true)
    assert.equal(marks.isOwnComment({ review: { body: `${review?.body} and more` } }), false)
    assert.equal(marks.isOwnComment({ comment: { body: review?.comments?.[0]?.body } }), true)
  })
})
