import assert from 'node:assert/strict'
import {
  createLoopGuard,
  createCommentMarks,
  OwnMessages,
} from '../../../../daemon/delivery/loop-guard.ts'
import { toAdf } from '../../../../daemon/delivery/format/jira.ts'
import { toCommentPage } from '../../../../daemon/delivery/targets/jira.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  json,
  startTargetServer,
  type TargetServer,
} from '../../../support/servers/target-server.ts'

/** As in the reference of "Add comment"; an event names it by version 2 of the API. */
const comment = {
  self: 'https://acme.atlassian.net/rest/api/3/issue/10010/comment/10000',
  id: '10000',
}
const event = {
  webhookEvent: 'comment_created',
  comment: { self: 'https://acme.atlassian.net/rest/api/2/issue/10010/comment/10000' },
  issue: { key: 'PROJ-7' },
}
const env = { JIRA_TOKEN: 'ATATT-1' }

describe('a comment on an issue of Jira', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer(json(201, comment))
  })
  afterEach(() => server.close())

  const run = async (target: string, text = 'an answer', messages = new OwnMessages()) => {
    const jira = { api_url: server.origin, email: 'me@example.com', token_env: 'JIRA_TOKEN' }
    const { deliver } = deliverWith({ jira }, { env, messages })
    const [result] = await deliver(resolveTargets([target], event), makeReply(text))
    return { result }
  }

  for (const target of ['jira:PROJ-7', 'jira:{{event.issue.key}}', 'jira:reply'])
    it(`is posted by the account of the token: ${target}`, async () => {
      assert.equal((await run(target)).result?.state, 'done')
      const [sent] = server.requests
      assert.deepEqual([sent?.method, sent?.path], ['POST', '/rest/api/3/issue/PROJ-7/comment'])
      const credentials = Buffer.from('me@example.com:ATATT-1').toString('base64')
      assert.equal(sent?.headers.authorization, `Basic ${credentials}`)
      const content = [{ type: 'paragraph', content: [{ type: 'text', text: 'an answer' }] }]
      assert.deepEqual(sent.fields, { body: { type: 'doc', version: 1, content } })
    })

  it('is linked by its page, where that is known', () => {
    const site = 'https://acme.atlassian.net'
    assert.deepEqual(toCommentPage(site, 'PROJ-7', '10000'), {
      what: 'comment',
      url: `${site}/browse/PROJ-7?focusedCommentId=10000`,
    })
    assert.equal(toCommentPage(site, 'PROJ-7', 'x'), undefined)
    assert.equal(toCommentPage('https://api.atlassian.com/ex/jira/1', 'PROJ-7', '1'), undefined)
  })

  it('runs nothing when it comes back, also while its response is on its way', async () => {
    const messages = new OwnMessages()
    const guard = createLoopGuard(createCommentMarks('x'), messages)
    let asked: Promise<void> | undefined
    server.next((...args) => {
      assert.equal(guard.ownDetail(event), undefined)
      asked = guard.posted()
      return json(201, comment)(...args)
    })
    await run('jira:reply', 'x', messages)
    await asked
    assert.equal(guard.ownDetail(event), 'it is about our own message')
    const other = { ...event.comment, self: `${event.comment.self}1` }
    assert.equal(guard.ownDetail({ ...event, comment: other }), undefined)
  })

  it('fails for an event without an issue, and for a key that is none', async () => {
    const { deliver } = deliverWith({}, {})
    for (const payload of [{}, { issue: { key: '../PROJ-7' } }, { issue: { key: 'PROJ-7/x' } }]) {
      const [result] = await deliver(resolveTargets(['jira:reply'], payload), makeReply())
      assert.deepEqual([result?.state, result?.code], ['failed', 'target-invalid'])
    }
  })

  it('says what is wrong, and is not sent twice without a response', async () => {
    server.next(json(401, {}))
    assert.match((await run('jira:PROJ-7')).result?.detail ?? '', /refused the token in JIRA_TOKEN/)
    server.next(json(404, { errorMessages: ['Issue does not exist'] }))
    assert.match((await run('jira:PROJ-7')).result?.detail ?? '', /there is no such issue/)
    server.next(json(429, {}, { 'retry-after': '0' }))
    assert.deepEqual((await run('jira:PROJ-7')).result?.attempts, 2)
    server.next((_response, _recorded, request) => void request.socket.destroy())
    assert.deepEqual((await run('jira:PROJ-7')).result?.attempts, 1)
  })
})

describe('the document of a comment at Jira', () => {
  const contentOf = (markdown: string) =>
    (toAdf(markdown) as { content: readonly unknown[] }).content
  const text = (value: string, ...marks: readonly object[]) =>
    marks.length === 0 ? { type: 'text', text: value } : { type: 'text', text: value, marks }
  const paragraph = (...content: readonly object[]) => ({ type: 'paragraph', content })

  it('has paragraphs, lines and formats', () =>
    assert.deepEqual(contentOf('# Fine\n\na **b _c_**\n`d` [e](https://example.com/)\n\n\n~~f~~'), [
      paragraph(text('Fine', { type: 'strong' })),
      paragraph(
        text('a '),
        text('b ', { type: 'strong' }),
        text('c', { type: 'strong' }, { type: 'em' }),
        { type: 'hardBreak' },
        text('d', { type: 'code' }),
        text(' '),
        text('e', { type: 'link', attrs: { href: 'https://example.com/' } }),
      ),
      paragraph(text('f', { type: 'strike' })),
    ]))

  it('has code as it is, in blocks', () =>
    assert.deepEqual(contentOf('a\n```js\nx = 1\n\ny\n```\nb'), [
      paragraph(text('a')),
      { type: 'codeBlock', attrs: { language: 'js' }, content: [text('x = 1\n\ny')] },
      paragraph(text('b')),
    ]))

  it('mentions no one, and has no empty text and no other scheme', () => {
    const hostile =
      '[~accountid:1] !https://x.example/y.png! {code}\n\n[a](javascript:x)\n**\n\n```\n```\n'
    const shown = JSON.stringify(toAdf(hostile))
    assert.doesNotMatch(shown, /"(?:mention|media|link|inlineCard)"|"text":""/)
    assert.match(shown, /\[~accountid:1\]/)
  })
})
