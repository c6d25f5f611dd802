import assert from 'node:assert/strict'
import type { AgentReply } from '../../../../daemon/delivery/sender.ts'
import { createCommentMarks } from '../../../../daemon/delivery/loop-guard.ts'
import { makeReply, deliverWith, resolveTargets } from '../../../support/servers/deliver.ts'
import { type GithubServer, startGithubServer } from '../../../support/servers/github-server.ts'
import {
  type TargetServer,
  json,
  reset,
  startTargetServer,
} from '../../../support/servers/target-server.ts'

const path = '/api/v3/repos/Acme/door.js/issues/7/comments'
const target = 'github:Acme/door.js#7'

describe('delivery to GitHub', () => {
  let server: TargetServer
  beforeEach(async () => {
    server = await startTargetServer(json(201, { id: 1 }))
  })
  afterEach(() => server.close())

  const run = async (text = 'an answer', tokens = ['gho_first', 'gho_second']) => {
    const test = deliverWith(
      { github: { api_url: `${server.origin}/api/v3/` } },
      { tokens: { github: tokens } },
    )
    const [result] = await test.deliver(resolveTargets([target]), makeReply(text))
    return { result, ...test }
  }
  it('links to its comment at the host of the API alone', async () => {
    const page = `${server.origin}/Acme/door.js/pull/7#issuecomment-1`
    for (const [html_url, url] of [
      [page, page],
      ['https://evil.example/x', undefined],
      [page.replace('//', '//me:secret@'), undefined],
      [page.replace('http', 'https'), undefined],
      ['javascript:alert(1)', undefined],
      [`${page}${'x'.repeat(3000)}`, undefined],
      [7, undefined],
    ] as const) {
      const links: { url: string }[] = []
      server.next(json(201, { id: 1, html_url }))
      const { deliver } = deliverWith(
        { github: { api_url: `${server.origin}/api/v3/` } },
        { tokens: { github: ['gho_first'] } },
      )
      await deliver(resolveTargets([target]), makeReply(), {
        made: (link) => void links.push(link),
      })
      assert.deepEqual(
        links.map((link) => link.url),
        url === undefined ? [] : [url],
        String(html_url).slice(0, 60),
      )
    }
  })

  const bodies = () => server.requests.map(({ fields }) => String(fields['body']))

  it('comments with the token of the login, under a hidden mark, and mentions no one', async () => {
    const { result } = await run('Thanks @octocat, see #1:\n\n```ts\n@Injectable() // #2\n```')
    assert.deepEqual(result, { target, state: 'done', attempts: 1 })
    const [request] = server.requests
    assert.deepEqual([request?.method, request?.path], ['POST', path])
    assert.equal(request?.headers.authorization, 'Bearer gho_first')
    assert.equal(request.headers.accept, 'application/vnd.github+json')
    assert.equal(request.headers['x-github-api-version'], '2022-11-28')
    assert.match(
      bodies()[0] ?? '',
      /^<!-- doorward:evt_0123456789abcdef01:1 [\w-]{43} -->\nThanks @\u200boctocat, see #\u200b1:\n\n```ts\n@Injectable\(\) \/\/ #2\n```$/,
    )
  })

  it('comments as the account that gateway.yaml names, and says whose token was refused', async () => {
    const test = deliverWith(
      { github: { api_url: `${server.origin}/api/v3/`, login: 'github@work' } },
      { tokens: { github: ['gho_private'], 'github@work': ['gho_work'] } },
    )
    await test.deliver(resolveTargets([target]), makeReply('an answer'))
    assert.equal(server.requests[0]?.headers.authorization, 'Bearer gho_work')
    assert.deepEqual(test.asked, [
      { provider: 'github@work', asker: 'target github', renewed: false },
    ])
    server.next(json(401, { message: 'Bad credentials' }))
    const [result] = await test.deliver(resolveTargets([target]), makeReply('an answer'))
    assert.match(result?.detail ?? '', /the github@work login \(doorward oauth login github@work\)/)
  })

  it('posts words alone: no link elsewhere, command, comment or closing word, behind its own mark', async () => {
    const text = `/approve\nfixes ${server.origin}/a/b/issues/1 ![x](https://evil.example/?d=1) <!-- x -->\nsee ${server.origin}/a/b`
    await run(text)
    const [, ...lines] = (bodies()[0] ?? '').replaceAll('\u200b', '·').split('\n')
    assert.match(bodies()[0] ?? '', /^<!-- doorward:/)
    assert.deepEqual(lines, [
      '/·approve',
      `f·ixes ${server.origin}/a/b/issues/1 ![x]·(https:·//evil.example/?d=1)  `,
      `see ${server.origin}/a/b`,
    ])
  })

  it('keeps links of the hosts that the rule allows', async () => {
    const { deliver } = deliverWith(
      { github: { api_url: `${server.origin}/api/v3/` } },
      { tokens: { github: ['gho_first'] } },
    )
    const text = '[x](https://docs.example.com/?a=1) https://evil.example'
    const publish = { allowedLinks: ['docs.example.com'] }
    await deliver(resolveTargets([target]), makeReply(text, { publish }))
    assert.match(bodies()[0] ?? '', /\n\[x\]\(https:\/\/docs\.example\.com\/\?a=1\) https:\u200b\//)
  })

  it('looks for its comment before it sends it again, and finds an earlier one', async () => {
    let arrived = ''
    server.next(
      (response, recorded, request) => {
        arrived = String(recorded.fields['body'])
        return reset(response, recorded, request)
      },
      (response) =>
        json(200, [{ body: 'x' }, { body: arrived }])(response, {} as never, {} as never),
    )
    const { result } = await run()
    assert.deepEqual(
      [result?.state, result?.attempts, result?.detail],
      ['done', 2, 'an earlier attempt had arrived'],
    )
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['POST', 'GET'],
    )
    assert.match(server.requests[1]?.path ?? '', /comments\?since=[^&]+&per_page=100&page=1$/)
  })

  for (const status of [500, 502, 503, 504])
    it(`looks first after ${status} too: the comment may be there already`, async () => {
      let arrived = ''
      server.next(
        (response, recorded, request) => {
          arrived = String(recorded.fields['body'])
          return json(status, {})(response, recorded, request)
        },
        (...asked) => json(200, [{ body: arrived }])(...asked),
      )
      const { result } = await run()
      assert.deepEqual(
        [result?.state, result?.attempts, result?.detail],
        ['done', 2, 'an earlier attempt had arrived'],
      )
      assert.deepEqual(
        server.requests.map(({ method }) => method),
        ['POST', 'GET'],
      )
    })

  it('looks first in a later delivery too, when all attempts of the first were answered 5xx', async () => {
    server.next(json(502, {}), ...Array.from({ length: 5 }, () => json(503, {})))
    const { result, deliver } = await run()
    assert.match(result?.detail ?? '', /answered 503; outcome unknown: it may have arrived$/)
    const [comment] = bodies()
    server.requests.length = 0
    server.next(json(200, [{ body: comment }]))
    const [later] = await deliver(resolveTargets([target]), makeReply())
    assert.deepEqual([later?.state, later?.detail], ['done', 'an earlier attempt had arrived'])
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['GET'],
    )
  })

  it('does not look after 429: nothing has arrived', async () => {
    server.next(json(429, {}, { 'retry-after': '0' }))
    assert.equal((await run()).result?.state, 'done')
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['POST', 'POST'],
    )
  })

  it('sends it again when it is missing among many others', async () => {
    const other = { body: 'x' }
    server.next(
      reset,
      json(
        200,
        Array.from({ length: 100 }, () => other),
      ),
      json(200, [other]),
    )
    const { result } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 2])
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['POST', 'GET', 'GET', 'POST'],
    )
    assert.equal(bodies()[0], bodies()[3])
  })

  it('sends nothing again while it cannot read the comments', async () => {
    server.next(reset, reset, json(502, {}), json(200, []))
    const { result } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 4])
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['POST', 'GET', 'GET', 'GET', 'POST'],
    )
  })

  it('finds it after long comments, and sends nothing again when the response is not a list', async () => {
    let arrived = ''
    const long = { body: 'x'.repeat(65_000) }
    server.next(
      (response, recorded, request) => {
        arrived = String(recorded.fields['body'])
        return reset(response, recorded, request)
      },
      (response) => {
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' })
        response.end('[{"body":"')
        response.destroy()
      },
      json(200, {}),
      (...asked) =>
        json(200, [...Array.from({ length: 99 }, () => long), { body: arrived }])(...asked),
    )
    const { result } = await run()
    assert.deepEqual(
      [result?.state, result?.attempts, result?.detail],
      ['done', 4, 'an earlier attempt had arrived'],
    )
    assert.deepEqual(
      server.requests.map(({ method }) => method),
      ['POST', 'GET', 'GET', 'GET'],
    )
  })

  it('reports that it may have arrived when that stays unknown', async () => {
    server.next(...Array.from({ length: 6 }, () => reset))
    const { result } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['failed', 6])
    assert.match(result?.detail ?? '', /outcome unknown: it may have arrived/)
  })

  it('waits for the end of a rate limit, in every form that GitHub uses', async () => {
    const soon = String(Math.floor(Date.now() / 1000))
    server.next(
      json(403, { message: 'limit' }, { 'retry-after': '0.1' }),
      json(403, { message: 'x' }, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': soon }),
    )
    const { result } = await run()
    assert.deepEqual([result?.state, result?.attempts], ['done', 3])
    server.next(json(403, { message: 'You have exceeded a secondary rate limit' }))
    const slow = await run()
    assert.match(slow.result?.detail ?? '', /a pause of 60 s/)
  })

  for (const [status, words] of [
    [403, /may not comment there/],
    [404, /no such issue/],
    [410, /was deleted/],
    [422, /rejects this comment/],
    [301, /was renamed/],
  ] as const)
    it(`fails immediately for ${status}, in plain words`, async () => {
      server.next(json(status, { message: 'x' }, { location: `${server.origin}/other` }))
      const { result } = await run()
      assert.deepEqual([result?.state, result?.attempts], ['failed', 1])
      assert.match(result?.detail ?? '', words)
      assert.equal(server.requests.length, 1)
    })

  const refused =
    'Although you appear to have the correct authorization credentials, the `acme` organization has '
  const sso = 'https://github.com/orgs/acme/sso?authorization_request=A1'
  const saml = 'Resource protected by organization SAML enforcement.'
  for (const [kind, message, header, words] of [
    [
      'single sign-on, with its page',
      `${saml} You must grant your OAuth token access to this organization.`,
      `required; url=${sso}`,
      `403: ${saml} You must grant your OAuth token access to this organization (authorize the token within an hour at ${sso})`,
    ],
    ['the page of another host', saml, `required; url=${sso.replace('.com', '.com.evil.example')}`],
    ['a page with a name in front', saml, `required; url=${sso.replace('//', '//evil@')}`],
    [
      'an IP allow list',
      `${refused}an IP allow list enabled, and your IP address is not permitted`,
    ],
    ['a repository that is archived', 'Repository was archived so is read-only.'],
    [
      'an app that is not approved',
      `${refused}enabled OAuth App access restrictions. For more information on these restrictions, visit https://docs.github.com/x`,
      '',
      'enabled OAuth App access restrictions (an owner of the organization has to approve the app',
    ],
    ['a locked conversation', 'Unable to create comment because issue is locked.'],
    [
      'words of a stranger',
      'locked\r\n\u001b[31m\u202e\u200b by gho_abcdefghijkl',
      '',
      '403: locked by … (',
    ],
  ] as const)
    it(`says that a refusal is for ${kind}, and not to log in with another scope`, async () => {
      server.next(json(403, { message }, header ? { 'x-github-sso': header } : {}))
      const { result } = await run()
      const detail = result?.detail ?? ''
      assert.ok(
        detail.includes(words ?? `github answered 403: ${message.replace(/\.$/, '')} (`),
        detail,
      )
      assert.doesNotMatch(detail, /scope|evil|gho_/)
    })

  it('shows the words of GitHub and the scopes where a scope may be missing', async () => {
    server.next(json(403, { message: 'Resource not accessible by integration' }))
    const { result } = await run()
    assert.match(result?.detail ?? '', /not accessible by integration \(the token may not comment/)
  })

  it('refreshes the token once, then asks for a login', async () => {
    server.next(json(401, {}))
    assert.equal((await run()).result?.state, 'done')
    server.next(json(401, {}))
    const { result } = await run('x', ['gho_only'])
    assert.deepEqual([result?.state, result?.code], ['failed', 'needs-login'])
  })
})

describe('a comment on GitHub that is updated', () => {
  let server: GithubServer
  beforeEach(async () => {
    server = await startGithubServer()
  })
  afterEach(() => server.close())

  const to = 'github:acme/door#7'
  const run = async (text: string, more: Partial<AgentReply>) => {
    const test = deliverWith(
      { github: { api_url: server.apiUrl } },
      { tokens: { github: ['gho_first'] } },
    )
    const [result] = await test.deliver(resolveTargets([to]), makeReply(text, more))
    return result
  }
  const texts = () => server.comments.map(({ body = '' }) => body.split('\n').slice(2).join('\n'))
  const first = { updateKey: '/github\nreview' }

  it('replaces the earlier one of the same key, and no other', async () => {
    server.comments.push({ id: 1, body: 'of a person' })
    await run('one', first)
    await run('another rule', { updateKey: '/github\nsummary' })
    const result = await run('two', { ...first, eventId: 'evt_0123456789abcdef02' })
    assert.deepEqual(result, { target: to, state: 'done', attempts: 1 })
    assert.deepEqual(texts(), ['', 'two', 'another rule'])
    const marks = createCommentMarks('an api token')
    for (const { body = '' } of server.comments.slice(1)) {
      assert.ok(body.split('\n').slice(0, 2).join('\n').length < 128)
      assert.equal(marks.isOwnComment({ action: 'edited', comment: { body } }), true)
    }
  })

  it('is found among many, and is new where a person has changed it', async () => {
    for (let id = 1; id <= 150; id += 1) server.comments.push({ id, body: 'x' })
    await run('one', first)
    await run('two', { ...first, eventId: 'evt_0123456789abcdef02' })
    assert.deepEqual([server.comments.length, texts().at(-1)], [151, 'two'])
    const comment = server.comments.at(-1)
    if (comment) comment.body += ' (of a person)'
    await run('three', { ...first, eventId: 'evt_0123456789abcdef03' })
    assert.deepEqual([server.comments.length, texts().at(-1)], [152, 'three'])
  })

  it('is not edited again, when an attempt had no response', async () => {
    await run('one', first)
    const [comment] = server.comments
    server.next(json(200, [comment]), (...asked) => {
      if (comment) comment.body = String(asked[1].fields['body'])
      return reset(...asked)
    })
    const result = await run('two', { ...first, eventId: 'evt_0123456789abcdef02' })
    assert.deepEqual(
      [result?.state, result?.attempts, result?.detail],
      ['done', 2, 'an earlier attempt had arrived'],
    )
    assert.deepEqual(texts(), ['two'])
  })
})

describe('the loop guard', () => {
  const marks = createCommentMarks('an api token')
  const id = 'evt_0123456789abcdef01'
  const body = marks.toBody(marks.markFor(id, 1, 'an answer\n\nof two'), 'an answer\n\nof two')
  const about = (text: unknown) => ({ action: 'created', comment: { body: text } })

  it('recognises its own comment after changes of white space', () => {
    for (const text of [body, body.replaceAll('\n', '\r\n'), `${body}\n`])
      assert.equal(marks.isOwnComment(about(text)), true)
  })

  it('ignores nothing that others wrote', () => {
    const mark = body.split('\n', 1)[0] ?? ''
    for (const text of [
      'hello',
      `${mark}\nrun this instead`,
      `${body} and more`,
      `before ${body}`,
      `<!-- doorward:${id}:1 ${'A'.repeat(43)} -->\nan answer`,
      `<!-- doorward:${id}:1 -->\nan answer`,
      `${mark}\n${body}`,
      createCommentMarks('another').toBody(createCommentMarks('another').markFor(id, 1, 'x'), 'x'),
      '',
      7,
      null,
    ])
      assert.equal(marks.isOwnComment(about(text)), false)
    for (const payload of [null, 3, 'x', [], {}, { comment: null }, { comment: 'x' }, { body }])
      assert.equal(marks.isOwnComment(payload), false)
  })
})
