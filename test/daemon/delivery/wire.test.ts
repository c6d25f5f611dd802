import assert from 'node:assert/strict'
import { REST } from '@discordjs/rest'
import { Octokit } from '@octokit/core'
import { LinearClient } from '@linear/sdk'
import { WebClient } from '@slack/web-api'
import { makeReply, deliverWith, resolveTargets } from '../../support/servers/deliver.ts'
import {
  type CheckBody,
  headOfPull,
  type ReviewBody,
  startGithubServer,
} from '../../support/servers/github-server.ts'
import {
  type Recorded,
  type TargetServer,
  json,
  startTargetServer,
} from '../../support/servers/target-server.ts'

/*
 * The official clients as the oracle: our requests must equal theirs. Both talk to the same server, which
 * records them.
 */

const mediaType = ({ headers }: Recorded) => (headers['content-type'] ?? '').split(';')[0]

describe('a request to a target', () => {
  let server: Pick<TargetServer, 'origin' | 'requests' | 'close'>
  afterEach(() => server.close())

  /** What the official client sent, and what we did. */
  const both = (): [theirs: Recorded, ours: Recorded] => {
    const [theirs, ours] = server.requests
    assert.ok(theirs && ours && server.requests.length === 2)
    return [theirs, ours]
  }

  it('equals that of the official client of Slack, as JSON instead of a form', async () => {
    server = await startTargetServer(json(200, { ok: true }))
    const client = new WebClient('xoxb-1', { slackApiUrl: `${server.origin}/api/` })
    await client.apiCall('chat.postMessage', {
      channel: '#alerts',
      markdown_text: '**done** & <b>',
      unfurl_links: false,
      unfurl_media: false,
    })
    const { deliver } = deliverWith(
      { slack: { api_url: `${server.origin}/api` } },
      { tokens: { slack: ['xoxb-1'] } },
    )
    await deliver(resolveTargets(['slack:#alerts']), makeReply('**done** & <b>'))
    const [theirs, ours] = both()
    assert.deepEqual([ours.method, ours.path], [theirs.method, theirs.path])
    assert.equal(ours.headers.authorization, theirs.headers.authorization)
    // A form has only text.
    const asText = Object.entries(ours.fields).map(([name, value]) => [name, String(value)])
    assert.deepEqual(Object.fromEntries(asText), { ...theirs.fields })
    // docs.slack.dev/reference/methods/chat.postMessage names both as content types.
    assert.deepEqual(
      [mediaType(theirs), ours.headers['content-type']],
      ['application/x-www-form-urlencoded', 'application/json; charset=utf-8'],
    )
  })

  it('equals that of the official client of Discord', async () => {
    server = await startTargetServer(json(200, { id: '1' }))
    const rest = new REST({ api: `${server.origin}/api`, version: '10' })
    await rest.post('/webhooks/123456789012345678/a-token', {
      auth: false,
      query: new URLSearchParams({ wait: 'true' }),
      body: { content: '**done** @everyone', allowed_mentions: { parse: [] }, flags: 4 },
    })
    const url = `${server.origin}/api/v10/webhooks/123456789012345678/a-token`
    const { deliver } = deliverWith({ discord: { ops: { url_env: 'URL' } } }, { env: { URL: url } })
    await deliver(resolveTargets(['discord:ops']), makeReply('**done** @everyone'))
    const [theirs, ours] = both()
    assert.deepEqual([ours.method, ours.path], [theirs.method, theirs.path])
    assert.deepEqual(ours.fields, theirs.fields)
    assert.equal(mediaType(ours), mediaType(theirs))
    assert.equal(theirs.headers.authorization, undefined)
    assert.equal(ours.headers.authorization, undefined)
  })

  it('equals that of the official client of GitHub', async () => {
    server = await startTargetServer(json(201, { id: 1 }))
    const { deliver } = deliverWith(
      { github: { api_url: server.origin } },
      { tokens: { github: ['gho_1'] } },
    )
    await deliver(resolveTargets(['github:acme/door#7']), makeReply('**done** & `x`'))
    const body = String(server.requests[0]?.fields['body'])
    const octokit = new Octokit({ baseUrl: server.origin, auth: 'gho_1' })
    await octokit.request('POST /repos/{owner}/{repo}/issues/{issue_number}/comments', {
      owner: 'acme',
      repo: 'door',
      issue_number: 7,
      body,
      headers: { 'x-github-api-version': '2022-11-28' },
    })
    const [ours, theirs] = both()
    assert.deepEqual([ours.method, ours.path], [theirs.method, theirs.path])
    assert.deepEqual(ours.fields, theirs.fields)
    for (const name of ['content-type', 'x-github-api-version'])
      assert.equal(ours.headers[name], theirs.headers[name])
    // Both are valid; GitHub's documentation recommends ours.
    assert.match(theirs.headers.accept ?? '', /^application\/vnd\.github\.v3\+json$/)
    assert.equal(ours.headers.accept, 'application/vnd.github+json')
    assert.deepEqual(
      [theirs.headers.authorization, ours.headers.authorization],
      ['token gho_1', 'Bearer gho_1'],
    )
  })

  it('equals that of the official client of GitHub for a review, a check and an edited comment', async () => {
    const github = await startGithubServer({ isApp: true })
    server = github
    const patch = '@@ -0,0 +1 @@\n+one'
    github.pull.files.push({ filename: 'a.ts', status: 'added', patch })
    const octokit = new Octokit({ baseUrl: github.apiUrl, auth: 'gho_1' })
    const { deliver } = deliverWith(
      { github: { api_url: github.apiUrl } },
      { tokens: { github: ['gho_1'] } },
    )
    const comments = [{ path: 'a.ts', line: 1, side: 'RIGHT', body: 'Why?' }]
    const answer = `Fine.\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``
    const at = { owner: 'acme', repo: 'door', headers: { 'x-github-api-version': '2022-11-28' } }
    const compare = async (target: string, ask: (ours: Recorded) => Promise<unknown>) => {
      const [result] = await deliver(
        resolveTargets([target]),
        makeReply(answer, { updateKey: 'a key' }),
      )
      assert.equal(result?.state, 'done', result?.detail)
      const ours = github.requests.at(-1)
      assert.ok(ours && ours.method !== 'GET')
      await ask(ours)
      const theirs = github.requests.at(-1)
      assert.deepEqual([ours.method, ours.path], [theirs?.method, theirs?.path])
      assert.deepEqual(ours.fields, theirs?.fields)
    }
    await compare('github-review:acme/door#7', async ({ fields }) =>
      octokit.request('POST /repos/{owner}/{repo}/pulls/{pull_number}/reviews', {
        ...at,
        pull_number: 7,
        ...(fields as ReviewBody),
      }),
    )
    await compare(`github-check:acme/door@${headOfPull}`, async ({ fields }) =>
      octokit.request('POST /repos/{owner}/{repo}/check-runs', {
        ...at,
        ...(fields as CheckBody & { status: 'completed' }),
      }),
    )
    await deliver(resolveTargets(['github:acme/door#7']), makeReply('x', { updateKey: 'a key' }))
    await compare('github:acme/door#7', async ({ fields }) =>
      octokit.request('PATCH /repos/{owner}/{repo}/issues/comments/{comment_id}', {
        ...at,
        comment_id: 1,
        body: String(fields['body']),
      }),
    )
  })

  it('equals that of the official client of Linear', async () => {
    const comment = { id: '9cfb482a-81e3-4154-b5b9-2c805e70a02d', url: 'https://linear.app/a' }
    server = await startTargetServer(
      json(200, { data: { commentCreate: { success: true, comment, lastSyncId: 1 } } }),
    )
    const test = deliverWith(
      { linear: { api_url: `${server.origin}/graphql`, token_env: 'KEY' } },
      { env: { KEY: 'lin_api_1' } },
    )
    await test.deliver(resolveTargets(['linear:ENG-7']), makeReply('**done**'))
    const variables = server.requests[0]?.fields['variables']
    const { input } = variables as { input: { id: string } }
    const client = new LinearClient({ apiKey: 'lin_api_1', apiUrl: `${server.origin}/graphql` })
    await client.createComment({ issueId: 'ENG-7', body: '**done**', id: input.id })
    const [ours, theirs] = both()
    assert.deepEqual([ours.method, ours.path], [theirs.method, theirs.path])
    assert.equal(ours.headers.authorization, theirs.headers.authorization)
    assert.deepEqual(ours.fields['variables'], theirs.fields['variables'])
    for (const { fields } of [ours, theirs])
      assert.match(String(fields['query']), /mutation .*commentCreate\(input: \$input\)/s)
    assert.equal(mediaType(ours), mediaType(theirs))
  })
})
