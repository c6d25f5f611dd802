import assert from 'node:assert/strict'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import {
  type GithubServer,
  headOfPull,
  startGithubServer,
} from '../../support/servers/github-server.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryHome } from '../../support/temporary.ts'

describe('a webhook whose answers become reviews, checks and comments', () => {
  let daemon: RunningDaemon
  let github: GithubServer

  before(async () => {
    github = await startGithubServer()
    const patch = '@@ -1 +1,2 @@\n one\n+two'
    github.pull.files.push({ filename: 'a.ts', status: 'modified', patch })
    const home = await temporaryHome({
      env: 'GITHUB_TOKEN_OF_TARGET=ghp_canary',
      gateway: `
oauth: { callback_port: 0 }
targets: { github: { api_url: "${github.apiUrl}", token_env: GITHUB_TOKEN_OF_TARGET } }
`,
      webhooks: `
webhooks:
  - path: /github
    agent: echo
    event_text: plain
    prompt_template: "{{event.text}}"
    rules:
      - name: review
        deliver_to: 'github-review:acme/door#{{event.number}}'
      - name: check
        deliver_to: 'github-check:acme/door@{{event.sha}}'
      - name: comment
        deliver_to: 'github:acme/door#{{event.number}}'
        update: true
`,
    })
    daemon = await startDaemon({ home })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    github.close()
  })

  const post = async (payload: object) => {
    const reply = await send(`${daemon.url}/github`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(payload),
    })
    const { events = [] } = reply.json() as { events?: readonly { id: string }[] }
    return Promise.all(events.map(async ({ id }) => untilFinished(daemon, id)))
  }

  it('posts the review, sets the check, and keeps one comment up to date', async () => {
    const comments = [{ path: 'a.ts', line: 2, side: 'RIGHT', body: 'Why two?' }]
    const text = `Fine.\n\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``
    for (const more of ['', ' Again.']) {
      const events = await post({ text: text + more, number: 7, sha: headOfPull })
      assert.deepEqual(
        events.map(({ rule, state, code }) => [rule, state, code]),
        ['review', 'check', 'comment'].map((rule) => [rule, 'done', undefined]),
      )
    }
    assert.equal(github.reviews[0]?.comments?.[0]?.line, 2)
    assert.deepEqual(
      github.statuses.map(({ context, state }) => [context, state]),
      [
        ['doorward/check', 'success'],
        ['doorward/check', 'success'],
      ],
    )
    assert.equal(github.comments.length, 1)
    assert.match(github.comments[0]?.body ?? '', /Again\.$/)
  })

  it('runs nothing for the events about them', async () => {
    const run = async (event: object) =>
      (
        await send(`${daemon.url}/github`, {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(event),
        })
      ).json()['status']
    assert.equal(await run({ action: 'submitted', review: github.reviews[0] }), 'filtered')
    assert.equal(await run({ action: 'edited', comment: github.comments[0] }), 'filtered')
    assert.equal(await run({ ...github.statuses[0], sha: headOfPull }), 'filtered')
  })
})
