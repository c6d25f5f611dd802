import assert from 'node:assert/strict'
import {
  createCommentMarks,
  createLoopGuard,
  OwnMessages,
} from '../../../../daemon/delivery/loop-guard.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  json,
  type Recorded,
  reset,
  startTargetServer,
  type TargetServer,
} from '../../../support/servers/target-server.ts'

const url = 'https://linear.app/acme/issue/ENG-7/title#comment-1'

describe('a comment on an issue of Linear', () => {
  let server: TargetServer
  const comments = new Map<string, string>()
  /** As Linear answers, also to what is not there. */
  const answer = ({ fields }: Recorded): unknown => {
    const { id = '', input } = fields['variables'] as { id?: string; input?: Input }
    if (String(fields['query']).startsWith('query ($id')) {
      if (comments.has(id)) return { data: { comment: { id, url } } }
      const extensions = { type: 'invalid input', code: 'INPUT_ERROR' }
      return { data: null, errors: [{ message: 'Entity not found: Comment', extensions }] }
    }
    if (!input) return { data: { viewer: { id: 'u' } } }
    assert.match(input.id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    comments.set(input.id, input.body)
    return { data: { commentCreate: { success: true, comment: { id: input.id, url } } } }
  }
  type Input = { readonly id: string; readonly issueId: string; readonly body: string }
  beforeEach(async () => {
    comments.clear()
    server = await startTargetServer((response, recorded, request) =>
      json(200, answer(recorded))(response, recorded, request),
    )
  })
  afterEach(() => server.close())

  const event = { type: 'Comment', action: 'create', data: { issue: { identifier: 'ENG-7' } } }
  const run = async (
    target = 'linear:reply',
    {
      text = 'an answer',
      payload = event,
      messages = new OwnMessages(),
    }: { text?: string; payload?: unknown; messages?: OwnMessages } = {},
  ) => {
    const { deliver } = deliverWith(
      { linear: { api_url: server.origin } },
      { tokens: { linear: ['lin_oauth_1'] }, messages },
    )
    const links: unknown[] = []
    const made = (link: unknown) => void links.push(link)
    const [result] = await deliver(resolveTargets([target], payload), makeReply(text), { made })
    return { result, links }
  }
  const sentInput = () => server.requests.at(-1)?.fields['variables'] as { input: Input }

  it('is posted by the login, and is linked', async () => {
    const { result, links } = await run('linear:{{event.data.issue.identifier}}')
    assert.equal(result?.state, 'done')
    assert.deepEqual(links, [{ target: 'linear:ENG-7', what: 'comment', url }])
    assert.equal(server.requests[0]?.headers.authorization, 'Bearer lin_oauth_1')
    assert.equal(sentInput().input.issueId, 'ENG-7')
  })

  const asks: readonly [what: string, payload: unknown, issue: string][] = [
    ['issue', { type: 'Issue', data: { identifier: 'ENG-8', id: 'x' } }, 'ENG-8'],
    ['comment', event, 'ENG-7'],
    ['session of an agent', { agentSession: { issue: { identifier: 'ENG-9' } } }, 'ENG-9'],
    ['notification', { notification: { issue: { identifier: 'ENG-1' } } }, 'ENG-1'],
  ]
  for (const [what, payload, issue] of asks)
    it(`answers at the issue of a ${what}`, async () => {
      await run('linear:reply', { payload })
      assert.equal(sentInput().input.issueId, issue)
    })

  it('sends nothing for an event of no issue, or with a name that is none', async () => {
    for (const payload of [
      {},
      { type: 'Project', data: { identifier: 'ENG-7' } },
      { data: { issueId: '../x' } },
    ]) {
      const { result } = await run('linear:reply', { payload })
      assert.deepEqual([result?.state, result?.code], ['failed', 'target-invalid'])
    }
    assert.equal(server.requests.length, 0)
  })

  it('mentions no one', async () => {
    await run('linear:reply', { text: '@ada https://linear.app/acme/profiles/ada\n\n`@x`' })
    assert.equal(
      sentInput().input.body,
      '@\u200bada https://linear.app/acme/\u200bprofiles/ada\n\n`@x`',
    )
  })

  it('runs nothing when it comes back, even before the response', async () => {
    const messages = new OwnMessages()
    const guard = createLoopGuard(createCommentMarks('x'), messages)
    const about = (id: string) => ({ ...event, data: { ...event.data, id } })
    let before: string | undefined
    server.next((...args) => {
      before = guard.ownDetail(about((args[1].fields['variables'] as { input: Input }).input.id))
      return json(200, answer(args[1]))(...args)
    })
    await run('linear:reply', { messages })
    assert.equal(before, 'it is about our own message')
    assert.equal(guard.ownDetail(about('9cfb482a-81e3-4154-b5b9-2c805e70a02d')), undefined)
  })

  it('is not posted twice when an attempt had no response', async () => {
    server.next((...args) => {
      answer(args[1])
      return reset(...args)
    })
    const { result } = await run()
    assert.deepEqual([result?.state, result?.detail], ['done', 'an earlier attempt had arrived'])
    server.next(reset)
    assert.equal((await run('linear:reply', { text: 'another' })).result?.state, 'done')
    assert.equal(comments.size, 2)
  })

  it('says what Linear says, and waits where it asks', async () => {
    const fault = (type: string) => json(400, { errors: [{ extensions: { type } }] })
    server.next(fault('invalid input'))
    assert.match((await run()).result?.detail ?? '', /invalid input \(there is no such issue/)
    server.next(fault('forbidden'))
    assert.match((await run()).result?.detail ?? '', /scope write or comments:create/)
    server.next(fault('ratelimited'))
    assert.equal((await run()).result?.attempts, 2)
    server.next(fault('authentication error'))
    assert.equal((await run()).result?.code, 'needs-login')
    server.next(json(200, 'a page'))
    assert.equal((await run()).result?.state, 'done')
  })
})
