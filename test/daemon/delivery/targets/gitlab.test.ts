import assert from 'node:assert/strict'
import { createCommentMarks } from '../../../../daemon/delivery/loop-guard.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

const target = 'gitlab:acme/tools/door.js!7'
const path = '/api/v4/projects/acme%2Ftools%2Fdoor.js/merge_requests/7/notes'

describe('delivery to GitLab', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer(json(201, { id: 1 }))
  })
  afterEach(() => server.close())

  const run = async (text = 'an answer', to = target, tokens = ['glo_first', 'glo_second']) => {
    const test = deliverWith(
      { gitlab: { api_url: `${server.origin}/api/v4/` } },
      { tokens: { gitlab: tokens } },
    )
    const [result] = await test.deliver(resolveTargets([to]), makeReply(text))
    return { result, ...test }
  }
  const bodies = () => server.requests.map(({ fields }) => String(fields['body']))
  const methods = () => server.requests.map(({ method }) => method)

  it('writes a note on a merge request with the token of the login, under a hidden mark', async () => {
    const { result, asked } = await run()
    assert.deepEqual(result, { target, state: 'done', attempts: 1 })
    const [request] = server.requests
    assert.deepEqual([request?.method, request?.path], ['POST', path])
    assert.equal(request?.headers.authorization, 'Bearer glo_first')
    assert.match(
      bodies()[0] ?? '',
      /^<!-- doorward:evt_0123456789abcdef01:1 [\w-]{43} -->\nan answer$/,
    )
    assert.deepEqual(asked, [{ provider: 'gitlab', asker: 'target gitlab', renewed: false }])
  })

  it('links to its note, by the number that GitLab gives it', async () => {
    for (const [id, to, page] of [
      [41, target, '/acme/tools/door.js/-/merge_requests/7#note_41'],
      [42, 'gitlab:acme/door#12', '/acme/door/-/issues/12#note_42'],
      ['1"><x', target, undefined],
      [undefined, target, undefined],
    ] as const) {
      const links: { url: string; what: string }[] = []
      server.next(json(201, { id }))
      const { deliver } = deliverWith(
        { gitlab: { api_url: `${server.origin}/api/v4` } },
        { tokens: { gitlab: ['glo_first'] } },
      )
      await deliver(resolveTargets([to]), makeReply(), { made: (link) => void links.push(link) })
      const expected = page === undefined ? [] : [['comment', `${server.origin}${page}`]]
      assert.deepEqual(
        links.map(({ what, url }) => [what, url]),
        expected,
      )
    }
  })

  it('writes a note on an issue, chosen by the event of a webhook', async () => {
    const test = deliverWith(
      { gitlab: { api_url: `${server.origin}/api/v4`, token_env: 'GITLAB_TOKEN' } },
      { env: { GITLAB_TOKEN: 'glpat-fixed' } },
    )
    const event = {
      project: { path_with_namespace: 'acme/door' },
      object_attributes: { iid: 12 },
    }
    const templates = [
      'gitlab:{{event.project.path_with_namespace}}#{{event.object_attributes.iid}}',
    ]
    const [result] = await test.deliver(resolveTargets(templates, event), makeReply())
    assert.deepEqual([result?.target, result?.state], ['gitlab:acme/door#12', 'done'])
    assert.equal(server.requests[0]?.path, '/api/v4/projects/acme%2Fdoor/issues/12/notes')
    assert.equal(server.requests[0].headers.authorization, 'Bearer glpat-fixed')
    const [refused] = await test.deliver(
      resolveTargets(templates, { ...event, project: { path_with_namespace: 'acme/../x' } }),
      makeReply(),
    )
    assert.deepEqual([refused?.state, refused?.code], ['failed', 'target-invalid'])
    assert.equal(server.requests.length, 1)
  })

  it('mentions no one, refers to nothing, and runs no quick action of the answer', async () => {
    await run(
      'Thanks @octo and @_x, see #1 and !2:\n/merge\n  /close \n/assign @me\n/usr/bin/env\n```\n/approve\n```',
    )
    const [, ...lines] = (bodies()[0] ?? '').split('\n')
    assert.deepEqual(lines, [
      'Thanks @\u200bocto and @\u200b_x, see #\u200b1 and !\u200b2:',
      '/\u200bmerge',
      '  /\u200bclose ',
      '/\u200bassign @\u200bme',
      '/usr/bin/env',
      '```',
      '/\u200bapprove',
      '```',
    ])
  })

  it('looks for its note before it sends it again, and finds an earlier one', async () => {
    let arrived = ''
    server.next(
      (response, recorded, request) => {
        arrived = String(recorded.fields['body'])
        return reset(response, recorded, request)
      },
      (...asked) => json(200, [{ body: 'x' }, { body: arrived }])(...asked),
    )
    const { result } = await run()
    assert.deepEqual(
      [result?.state, result?.attempts, result?.detail],
      ['done', 2, 'an earlier attempt had arrived'],
    )
    assert.deepEqual(methods(), ['POST', 'GET'])
    assert.match(server.requests[1]?.path ?? '', /notes\?order_by=created_at&sort=desc&per_page=/)
  })

  it('looks only as far back as an earlier attempt can be, then sends it again', async () => {
    const at = (ageMs: number) => new Date(Date.now() - ageMs).toISOString()
    const page = (ageMs: number) =>
      json(
        200,
        Array.from({ length: 100 }, () => ({ body: 'x', created_at: at(ageMs) })),
      )
    server.next(json(502, {}), page(1000), page(48 * 3_600_000))
    const { result } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 2])
    assert.deepEqual(methods(), ['POST', 'GET', 'GET', 'POST'])
  })

  it('sends nothing again while it cannot read the notes, and waits as it is asked to', async () => {
    server.next(reset, json(200, {}), json(429, {}, { 'retry-after': '0' }), json(200, []))
    const { result } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 4])
    assert.deepEqual(methods(), ['POST', 'GET', 'GET', 'GET', 'POST'])
  })

  for (const [status, words] of [
    [400, /rejects this note/],
    [403, /needs the scope api/],
    [404, /no such merge request or issue/],
    [301, /was moved/],
  ] as const)
    it(`fails immediately for ${status}, in plain words`, async () => {
      server.next(json(status, { message: 'x' }, { location: `${server.origin}/other` }))
      const { result } = await run()
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.match(result?.detail ?? '', words)
      assert.equal(server.requests.length, 1)
    })

  it('refreshes the token once, then asks for a login', async () => {
    server.next(json(401, {}))
    assert.equal((await run()).result?.state, 'done')
    server.next(json(401, {}))
    const { result } = await run('x', target, ['glo_only'])
    assert.deepEqual([result?.state, result?.code], ['failed', 'needs-login'])
    assert.match(result?.detail ?? '', /doorward oauth login gitlab/)
  })

  it('recognises its own note in an event of GitLab, and nothing that others wrote', () => {
    const marks = createCommentMarks('an api token')
    const note = marks.toBody(marks.markFor('evt_0123456789abcdef01', 1, 'an answer'), 'an answer')
    const about = (text: string) => ({ object_kind: 'note', object_attributes: { note: text } })
    assert.equal(marks.isOwnComment(about(note)), true)
    assert.equal(marks.isOwnComment(about(`${note}, or not`)), false)
    assert.equal(marks.isOwnComment(about('an answer')), false)
  })
})
