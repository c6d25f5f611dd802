import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { EventRecord } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import {
  type GithubAppServer,
  startGithubAppServer,
} from '../../support/servers/github-app-server.ts'
import { headOfPulls } from '../../support/servers/github-checks.ts'
import { makeBot } from '../../support/servers/make-bot.ts'

const sha = 'a'.repeat(40)

const rules = `rules:
      - { name: review, on: pull_request, agent: echo, prompt_template: 'The branch looks good.' }
      - { name: verdict, on: push, agent: echo, prompt_template: "Fine.\\n\\n\`\`\`json\\n{\\"conclusion\\": \\"success\\"}\\n\`\`\`", deliver_to: 'github-check:{{event.repository.full_name}}@{{event.after}}' }
      - { name: once, on: workflow_run, agent: echo, prompt_template: x, max_runs: 1/day }
      - { name: late, on: check_suite, agent: echo, prompt_template: x, coalesce: { key: '{{event.check_suite.head_branch}}', quiet: 60s } }
      - { name: asks, on: pull_request_review, agent: echo, prompt_template: 'Send this.', deliver_to: 'file:asked.md', approve: { by: [check], when: [file], who: { github: write } } }
      - { name: fails, on: issue_comment, agent: broken, prompt_template: 'secret words' }
`

describe('a check that follows an event', () => {
  let github: GithubAppServer
  let daemon: RunningDaemon

  before(async () => {
    github = await startGithubAppServer()
    daemon = await startDaemon({
      gateway: `
oauth: { callback_port: 0 }
providers: { github: { api_url: "${github.apiUrl}" } }
targets: { github: { api_url: "${github.apiUrl}" } }
`,
      agents: `agents:
  echo: { kind: echo }
  broken: { kind: command, command: [node, -e, "console.error('inner details'); process.exit(3)"] }
`,
    })
    await makeBot(
      { github, daemon },
      ['--name', 'checker', '--url', 'https://one.example'],
      ['acme/shop'],
    )
    const file = join(daemon.home.config, 'webhooks.yaml')
    const text = (await readFile(file, 'utf8')).replace('rules: []\n', `check: true\n    ${rules}`)
    await writeFile(file, text)
    await daemon.client.post('/daemon/reload')
    github.tunnel = daemon.url
    github.checks.roles.set('ada', 'write')
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    github.close()
  })

  const eventsOf = async () => {
    const path = '/events?webhook=/webhook/checker'
    return (await daemon.client.get<{ events: EventRecord[] }>(path)).events
  }
  const happen = async (event: string, payload: object): Promise<EventRecord> => {
    const sent = await github.happen('checker', event, {
      repository: { full_name: 'acme/shop' },
      sender: { login: 'ada', type: 'User' },
      ...payload,
    })
    assert.equal(sent.status, 202)
    const events = await eventsOf()
    return untilFinished(daemon, events[0]?.id ?? '')
  }
  const untilEnded = async (place: number) => {
    for (;;) {
      const check = github.checks.checks[place]
      if (check?.status === 'completed') return check
      await daemon.client.get('/status')
    }
  }
  const opened = { action: 'opened', number: 7, pull_request: { number: 7, head: { sha } } }

  it('is queued, in progress, and completed with the outcome', async () => {
    await happen('pull_request', opened)
    const check = await untilEnded(0)
    assert.deepEqual(check.states, ['queued', 'in_progress', 'neutral'])
    assert.deepEqual([check.name, check.head_sha], ['doorward/review', sha])
    assert.equal(check.output?.title, 'The agent has answered.')
    assert.deepEqual(
      check.actions?.map(({ label }) => label),
      ['Run again'],
    )
    const permissions = github.minted.map((one) => one.permissions)
    assert.ok(permissions.some((one) => JSON.stringify(one) === '{"checks":"write"}'))
  })

  it('runs again by its button and by that of GitHub, for those who may start it', async () => {
    const press = async (login: string, identifier?: string) => {
      const before = github.checks.checks.length
      const sent = await github.happen(
        'checker',
        'check_run',
        github.checks.pressed(300, login, identifier),
      )
      assert.equal(sent.status, 202)
      return before
    }
    for (const identifier of ['run-again', undefined]) {
      const check = await untilEnded(await press('ada', identifier))
      assert.deepEqual([check.name, check.states.at(-1)], ['doorward/review', 'neutral'])
    }
    const before = await press('reader', 'run-again')
    const refused = async (): Promise<EventRecord> => {
      const events = await eventsOf()
      const [found] = events
      return found?.code === undefined ? refused() : found
    }
    assert.match((await refused()).detail ?? '', /^not run again: reader has the role read/)
    assert.equal(github.checks.checks.length, before)
  })

  it('asks for an approval by its buttons, of those with the role, for the answer that was shown', async () => {
    const review = { id: 1, body: 'ok' }
    const submitted = { action: 'submitted', review, pull_request: { number: 7, head: { sha } } }
    const ask = async () => {
      const place = github.checks.checks.length
      await github.happen('checker', 'pull_request_review', {
        repository: { full_name: 'acme/shop' },
        sender: { login: 'ada', type: 'User' },
        ...submitted,
      })
      for (;;) {
        const check = github.checks.checks[place]
        if (check?.states.at(-1) === 'action_required') return { place, check }
        await daemon.client.get('/status')
      }
    }
    const press = async (place: number, login: string, identifier = '') => {
      const pressed = github.checks.pressed(300 + place, login, identifier)
      await github.happen('checker', 'check_run', pressed)
    }
    const untilState = async (place: number, state: string) => {
      while (github.checks.checks[place]?.states.at(-1) !== state)
        await daemon.client.get('/status')
    }
    const { place, check } = await ask()
    const [send, decline] = check.actions?.map(({ identifier }) => identifier) ?? []
    await press(place, 'reader', send)
    const refused = async (): Promise<EventRecord> => {
      const [found] = await eventsOf()
      return found?.code === undefined ? refused() : found
    }
    assert.match((await refused()).detail ?? '', /^the answer does not count: reader has the role/)
    await press(place, 'ada', 'send 000000000000')
    assert.match((await refused()).detail ?? '', /older answer/)
    await press(place, 'ada', send)
    await untilState(place, 'neutral')
    const written = await readFile(join(daemon.home.root, 'asked.md'), 'utf8')
    assert.equal(written.match(/Send this\./g)?.length, 1)
    const second = await ask()
    await press(second.place, 'ada', decline)
    await press(second.place, 'ada', second.check.actions?.[1]?.identifier)
    await untilState(second.place, 'cancelled')
  })

  it('is the one of the target github-check of its rule', async () => {
    const place = github.checks.checks.length
    const event = await happen('push', { ref: 'refs/heads/main', after: sha, commits: [] })
    assert.equal(event.state, 'done', event.detail)
    const check = await untilEnded(place)
    assert.deepEqual(check.states, ['queued', 'in_progress', 'success'])
    assert.equal(github.checks.checks.length, place + 1)
  })

  it('says in one sentence that a run failed, at the head of the pull request of a comment', async () => {
    const place = github.checks.checks.length
    const issue = { number: 7, pull_request: {} }
    const event = await happen('issue_comment', { action: 'created', issue, comment: { id: 1 } })
    assert.equal(event.state, 'failed')
    const check = await untilEnded(place)
    assert.deepEqual(
      [check.head_sha, check.states.at(-1), check.output?.summary],
      [headOfPulls, 'failure', 'The agent could not finish its work.'],
    )
    assert.doesNotMatch(JSON.stringify(check), /inner details|secret words/)
  })

  it('is skipped over budget, and cancelled where a newer event or its owner ends it', async () => {
    const place = github.checks.checks.length
    const run = { workflow_run: { head_sha: sha } }
    await happen('workflow_run', run)
    assert.equal((await happen('workflow_run', run)).code, 'over-budget')
    const skipped = await untilEnded(place + 1)
    assert.deepEqual([skipped.name, skipped.states], ['doorward/once', ['skipped']])
    const suite = { check_suite: { head_sha: sha, head_branch: 'main' } }
    const send = async () =>
      github.happen('checker', 'check_suite', { ...suite, repository: { full_name: 'acme/shop' } })
    await send()
    await send()
    const replaced = await untilEnded(place + 2)
    assert.deepEqual(replaced.states, ['queued', 'cancelled'])
    assert.equal(replaced.output?.summary, 'A newer event replaced it.')
    const [waiting] = await eventsOf()
    await daemon.client.post(`/events/${waiting?.id}/cancel`)
    assert.equal((await untilEnded(place + 3)).output?.summary, 'It was cancelled.')
  })

  it('says so where what started it is gone', async () => {
    assert.equal(await daemon.stop(), 0)
    daemon = await startDaemon({ home: daemon.home })
    github.tunnel = daemon.url
    const delivery = github.checks.pressed(300, 'ada', 'run-again')
    assert.equal((await github.happen('checker', 'check_run', delivery)).status, 202)
    const said = () => github.checks.checks[0]?.output?.title ?? ''
    while (said() === 'The agent has answered.') await daemon.client.get('/status')
    assert.equal(said(), 'It cannot run again: what started it is no longer kept.')
  })

  it('needs a bot', async () => {
    const file = join(daemon.home.config, 'webhooks.yaml')
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace(/ {4}source:.*\n/, ''))
    const { stdout } = await run(['config', 'check'], { home: daemon.home })
    await writeFile(file, text)
    assert.match(stdout, /only a bot may make checks/)
  })
})
