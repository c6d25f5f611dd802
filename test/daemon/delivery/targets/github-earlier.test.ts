import assert from 'node:assert/strict'
import type { AgentReply } from '../../../../daemon/delivery/sender.ts'
import { createCommentMarks } from '../../../../daemon/delivery/loop-guard.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import { type GithubServer, startGithubServer } from '../../../support/servers/github-server.ts'
import { json, reset } from '../../../support/servers/target-server.ts'

const patch = '@@ -1,2 +1,4 @@\n one\n-two\n+TWO\n+more\n+more'
const moved = `@@ -1,2 +1,5 @@\n+zero\n one\n-two\n+TWO\n+more\n+more`
const answer = (text: string, ...comments: readonly object[]) =>
  `${text}\n\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``
const at = (line: number, body: string) => ({ path: 'src/a.ts', line, side: 'RIGHT', body })
const shown = (body = '') => body.replaceAll(/<!-- doorward[^>]*-->\s*/g, '')
const stranger = { id: 7, login: 'eve', type: 'User' }

describe('a review on GitHub after an earlier one of its rule', () => {
  let server: GithubServer
  let events: number
  beforeEach(async () => {
    events = 0
    server = await startGithubServer()
    server.pull.files.push({ filename: 'src/a.ts', status: 'modified', patch })
  })
  afterEach(() => server.close())

  const run = async (text: string, more: Partial<AgentReply> = {}) => {
    const { deliver } = deliverWith(
      { github: { api_url: server.apiUrl } },
      { tokens: { github: ['gho_first'] } },
    )
    events += 1
    const eventId = `evt_${String(events).padStart(18, '0')}`
    const reply = makeReply(text, { eventId, rule: 'review', ...more })
    const [result] = await deliver(resolveTargets(['github-review:acme/door#7']), reply)
    assert.equal(result?.state, 'done', result?.detail)
    return result
  }
  const texts = () => server.reviews.map(({ body }) => shown(body))
  const comments = () => server.threads.map(({ body }) => shown(body))

  it('repeats no comment with the same file, text of the line and words', async () => {
    await run(answer('One.', at(2, 'Why?'), at(3, 'Twice?')))
    const file = server.pull.files[0]
    assert.ok(file)
    // All lines have other numbers now.
    server.pull.files[0] = { ...file, patch: moved }
    const result = await run(answer('Two.', at(3, 'Why?'), at(4, 'New.'), at(2, 'Why?')))
    assert.equal(result.detail, 'a comment was there already')
    assert.deepEqual(comments(), ['Why?', 'Twice?', 'New.', 'Why?'])
  })

  it('replaces the words of the earlier one by a link', async () => {
    await run('One.')
    await run('Two.')
    await run('Three.')
    const link = (id: number) =>
      `[A newer review](${server.origin}/acme/door/pull/7#pullrequestreview-${id}) replaces this one.`
    assert.deepEqual(texts(), [link(2), link(3), 'Three.'])
  })

  it('is posted also where each of its comments repeats, and tells of them', async () => {
    await run(answer('One.', at(2, 'Why?')))
    await run(answer('', at(2, 'Why?')))
    assert.equal(comments().length, 1)
    assert.equal(texts()[1], '_A comment of an earlier review still applies, and is not repeated._')
    // Also after the review that has it was replaced.
    await run(answer('', at(2, 'Why?')))
    assert.equal(comments().length, 1)
  })

  it('has the same comment on equal lines as often as the answer has it', async () => {
    await run(answer('One.', at(3, 'Twice?')))
    await run(answer('Two.', at(3, 'Twice?'), at(4, 'Twice?')))
    assert.deepEqual(comments(), ['Twice?', 'Twice?'])
  })

  it('resolves its threads on lines that are gone, and no others', async () => {
    await run(answer('One.', at(2, 'Gone?'), at(3, 'Here.')))
    await run(answer('One.', at(2, 'Of another rule.')), { rule: 'other' })
    const [gone, , other] = server.threads
    assert.ok(gone && other)
    gone.isOutdated = true
    other.isOutdated = true
    server.threads.push({ ...gone, user: stranger })
    assert.equal((await run('Two.')).detail, undefined)
    assert.deepEqual(
      server.threads.map(({ isResolved }) => isResolved),
      [true, false, false, false],
    )
  })

  it('touches no review of another rule, pull request or account', async () => {
    await run(answer('One.', at(2, 'Why?')), { rule: 'other' })
    await run(answer('Two.', at(2, 'Why?')), { webhook: '/other' })
    await run(answer('Three.', at(2, 'Why?')))
    assert.deepEqual(texts(), ['One.', 'Two.', 'Three.'])
    assert.equal(comments().length, 3)
    // A stranger copies all of it, and deletes nothing.
    for (const review of server.reviews) review.user = stranger
    for (const thread of server.threads) thread.user = stranger
    await run(answer('Four.', at(2, 'Why?')))
    assert.deepEqual(texts(), ['One.', 'Two.', 'Three.', 'Four.'])
    assert.equal(comments().length, 4)
  })

  it('counts no text that someone has changed', async () => {
    await run(answer('One.', at(2, 'Why?')))
    const [review] = server.reviews
    assert.ok(review)
    review.body += ' And more.'
    await run(answer('Two.', at(2, 'Why?')))
    assert.deepEqual(texts(), ['One. And more.', 'Two.'])
  })

  it('is the same for an app, whose token cannot ask who it is', async () => {
    server.close()
    server = await startGithubServer({ isApp: true })
    server.pull.files.push({ filename: 'src/a.ts', status: 'modified', patch })
    await run(answer('One.', at(2, 'Why?')))
    await run(answer('Two.', at(2, 'Why?')))
    assert.match(texts()[0] ?? '', /replaces this one/)
    assert.equal(comments().length, 1)
  })

  for (const status of [403, 404, 422, 500])
    it(`is posted once where GitHub answers ${status} to all that follows`, async () => {
      await run(answer('One.', at(2, 'Why?')))
      const thread = server.threads[0]
      assert.ok(thread)
      thread.isOutdated = true
      const head =
        (path: string) =>
        (...args: Parameters<typeof reset>) => {
          assert.ok(args[1].path.endsWith(path), args[1].path)
          return json(status, { message: 'No' })(...args)
        }
      const pass: Parameters<typeof server.next> = [
        json(200, [{ id: 1, body: server.reviews[0]?.body, user: { id: 583_231 } }]),
        json(200, { id: 583_231 }),
        json(200, []),
        json(200, { id: 2, user: { id: 583_231 } }),
      ]
      server.next(...pass, head('/pulls/7/reviews/1'), head('/graphql'))
      const result = await run('Two.')
      assert.match(
        result.detail ?? '',
        new RegExp(
          `^an earlier review keeps its words: github answered ${status}.*; threads on lines that are gone stay open: github answered ${status}`,
        ),
      )
      assert.equal(result.attempts, 1)
    })

  it('says so where the token may not resolve', async () => {
    await run(answer('One.', at(2, 'Why?')))
    const thread = server.threads[0]
    assert.ok(thread)
    thread.isOutdated = true
    const marked = json(200, [{ id: 1, body: server.reviews[0]?.body, user: { id: 583_231 } }])
    const nodes = [
      {
        id: '0',
        isOutdated: true,
        isResolved: false,
        comments: { nodes: [{ body: thread.body, viewerDidAuthor: true }] },
      },
    ]
    const data = { repository: { pullRequest: { reviewThreads: { nodes } } } }
    const errors = [{ type: 'FORBIDDEN', message: 'Resource not accessible by integration' }]
    server.next(
      marked,
      json(200, { id: 583_231 }),
      json(200, []),
      json(200, { id: 2, user: { id: 583_231 } }),
      json(200, {}),
      json(200, { data }),
      json(200, { data: null, errors }),
    )
    const { detail } = await run('Two.')
    assert.equal(
      detail,
      'threads on lines that are gone stay open: the token may not resolve threads',
    )
  })

  it('is not posted twice where its response was lost, and replaces the earlier one then', async () => {
    await run(answer('One.', at(2, 'Why?')))
    const first = server.reviews[0]?.body
    const earlier = { id: 1, body: first, user: { id: 583_231 } }
    let posted = ''
    server.next(
      // The diff, and the reviews.
      json(200, server.pull.files),
      json(200, [earlier]),
      json(200, { id: 583_231 }),
      json(200, server.threads),
      (...args) => {
        posted = String(args[1].fields['body'])
        return reset(...args)
      },
      json(200, server.pull.files),
      (...args) => json(200, [earlier, { id: 2, body: posted, user: { id: 583_231 } }])(...args),
    )
    const result = await run(answer('Two.', at(2, 'Why?')))
    assert.match(result.detail ?? '', /^an earlier attempt had arrived; a comment was there/)
    assert.equal(server.reviews.length, 1)
    assert.match(shown(server.reviews[0]?.body), /replaces this one/)
  })

  it('runs no webhook by what it replaces', async () => {
    await run('One.')
    await run('Two.')
    const marks = createCommentMarks('an api token')
    for (const { body } of server.reviews)
      assert.equal(marks.isOwnComment({ action: 'edited', review: { body } }), true)
  })
})
