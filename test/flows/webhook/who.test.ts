import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { EventDetail, EventRecord } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

const secret = 'a secret of the tests'
const gitlabSecret = 'a token of a hook'
const repository = { full_name: 'acme/shop' }

const webhooks = `
webhooks:
  - path: /usual
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: ran
    max_runs: 100/day
  - path: /maintain
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: ran
    who: maintain
    allowed_bots: [renovate]
  - path: /anyone
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: ran
    who: anyone
  - path: /names
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: ran
    who: [Ada, grace]
  - path: /quiet
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: ran
    coalesce: { key: '{{event.issue.number}}', quiet: 20s }
  - path: /gitlab
    signature_scheme: gitlab
    secret_env: GITLAB_HOOK
    agent: echo
    prompt_template: ran
`

describe('who may start a rule', () => {
  let api: TargetServer
  let daemon: RunningDaemon
  const known = new Map<string, object>()
  const setRole = (login: string, role_name: string, permission = role_name) =>
    known.set(`/repos/acme/shop/collaborators/${login}/permission`, { permission, role_name })

  before(async () => {
    api = await startTargetServer((response, recorded, request) => {
      const found = known.get(recorded.path)
      return json(found ? 200 : 404, found ?? {})(response, recorded, request)
    })
    const home = await temporaryHome({
      env: `HOOK_SECRET=${secret}\nGITLAB_HOOK=${gitlabSecret}\nGITHUB_TOKEN=of-github\nGITLAB_TOKEN=of-gitlab\n`,
      gateway: `
targets:
  github: { api_url: "${api.origin}", token_env: GITHUB_TOKEN }
  gitlab: { api_url: "${api.origin}/api/v4", token_env: GITLAB_TOKEN }
`,
      webhooks,
    })
    daemon = await startDaemon({ home })
    for (const [login, role] of [
      ['reader', 'read'],
      ['writer', 'write'],
      ['boss', 'admin'],
    ] as const)
      setRole(login, role)
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    api.close()
  })

  const post = async (path: string, event: string, payload: object): Promise<string> => {
    const body = JSON.stringify(payload)
    const headers = githubHeaders(body, secret, { 'x-github-event': event })
    const reply = await send(`${daemon.url}${path}`, { headers, body })
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  const comment = (login: string, more: object = {}) => ({
    action: 'created',
    issue: { number: 7 },
    comment: { body: '@bot fix it', user: { login: 'author' } },
    repository,
    sender: { login, type: 'User' },
    ...more,
  })
  const end = async (id: string) => {
    const { state, code, detail } = await untilFinished(daemon, id)
    return state === 'done' ? state : [state, code, detail]
  }
  const endOf = async (path: string, login: string, more: object = {}) =>
    end(await post(path, 'issue_comment', comment(login, more)))
  const timesAsked = (login: string) =>
    api.requests.filter(({ path }) => path.includes(`/${login}/`)).length

  it('is who may write, where a comment, label or button starts it, and anyone else', async () => {
    assert.equal(await endOf('/usual', 'writer'), 'done')
    const refused = [
      'filtered',
      'not-allowed',
      'reader has the role read in acme/shop, and who is write',
    ]
    assert.deepEqual(await endOf('/usual', 'reader'), refused)
    for (const [event, payload] of [
      ['issues', { action: 'labeled', issue: {}, label: {} }],
      ['pull_request', { action: 'labeled', pull_request: {}, label: {} }],
      ['pull_request_review', { action: 'submitted', pull_request: {}, review: {} }],
      ['pull_request_review_comment', { action: 'created', pull_request: {}, comment: {} }],
      ['check_run', { action: 'requested_action', check_run: {} }],
    ] as const) {
      const { issue: _issue, comment: _comment, ...rest } = comment('reader')
      assert.deepEqual(
        await end(await post('/usual', event, { ...rest, ...payload })),
        refused,
        event,
      )
    }
    const opened = { action: 'opened', issue: {}, repository, sender: { login: 'stranger' } }
    assert.equal(await end(await post('/usual', 'issues', opened)), 'done')
    assert.equal(await endOf('/anyone', 'stranger'), 'done')
    const { authorization } = api.requests[0]?.headers ?? {}
    assert.equal(authorization, 'Bearer of-github')
  })

  it('is asked of GitHub, once in five minutes; what is not known is no, and is asked again', async () => {
    setRole('custom', 'release manager', 'write')
    setRole('nobody', 'none')
    assert.equal(await endOf('/usual', 'custom'), 'done')
    assert.equal(await endOf('/usual', 'custom'), 'done')
    assert.equal(timesAsked('custom'), 1)
    assert.deepEqual(await endOf('/usual', 'nobody'), [
      'filtered',
      'not-allowed',
      'nobody has no role in acme/shop, and who is write',
    ])
    for (const round of [1, 2]) {
      const [state, code, detail] = await endOf('/usual', 'unknown')
      assert.deepEqual([state, code], ['filtered', 'not-allowed'])
      assert.match(
        detail ?? '',
        /^it is not known whether unknown has the role write in acme\/shop: github answered 404/,
      )
      assert.equal(timesAsked('unknown'), round)
    }
    api.next(json(500, {}))
    assert.match((await endOf('/usual', 'later'))[2] ?? '', /github answered 500/)
    setRole('later', 'write')
    assert.equal(await endOf('/usual', 'later'), 'done')
  })

  it('asks for the editor of a comment, and gives the run back to max_runs', async () => {
    const edited = { action: 'edited', comment: { body: 'x', user: { login: 'boss' } } }
    assert.equal((await endOf('/usual', 'reader', edited))[1], 'not-allowed')
    const { stdout } = await run(
      ['webhook', 'explain', '/usual', '--sample', 'github:push', '--json'],
      { home: daemon.home },
    )
    const done = await daemon.client.get<{ events: EventRecord[] }>('/events?webhook=/usual')
    const ran = done.events.filter(({ state }) => state === 'done').length
    assert.match(stdout, new RegExp(`"left": ?${100 - ran}\\b`))
  })

  it('is a role in the repository or higher; bots never, unless allowed_bots has them', async () => {
    assert.equal((await endOf('/maintain', 'writer'))[1], 'not-allowed')
    assert.equal(await endOf('/maintain', 'boss'), 'done')
    const bot = (login: string) => ({ sender: { login, type: 'Bot' } })
    assert.deepEqual(await endOf('/maintain', '', bot('other[bot]')), [
      'filtered',
      'not-allowed',
      'other[bot] is a bot, and none of allowed_bots',
    ])
    assert.equal(await endOf('/maintain', '', bot('renovate[bot]')), 'done')
    assert.equal((await endOf('/names', '', bot('ada')))[1], 'not-allowed')
    assert.equal(timesAsked('other%5Bbot%5D'), 0)
  })

  it('is a list of names, and nobody is asked', async () => {
    assert.equal(await endOf('/names', 'ada'), 'done')
    assert.deepEqual(await endOf('/names', 'boss2'), [
      'filtered',
      'not-allowed',
      'boss2 is not one of who',
    ])
    assert.equal(timesAsked('ada') + timesAsked('boss2'), 0)
    assert.deepEqual(await endOf('/names', 'x', { sender: undefined }), [
      'filtered',
      'not-allowed',
      'the event does not say who started it',
    ])
  })

  it('is asked of GitLab by the number of the member', async () => {
    const note = async (id: number): Promise<string> => {
      const body = JSON.stringify({
        object_kind: 'note',
        object_attributes: { note: '@bot', id: 1 },
        user: { id, username: `user${id}` },
        project: { path_with_namespace: 'group/app' },
      })
      const headers = {
        'content-type': 'application/json',
        'x-gitlab-event': 'Note Hook',
        'x-gitlab-token': gitlabSecret,
      }
      const reply = await send(`${daemon.url}/gitlab`, { headers, body })
      assert.equal(reply.status, 202, reply.text)
      return String(reply.json()['id'])
    }
    const members = '/api/v4/projects/group%2Fapp/members/all'
    known.set(`${members}/1`, { access_level: 30, state: 'active' })
    known.set(`${members}/2`, { access_level: 20, state: 'active' })
    known.set(`${members}/3`, { access_level: 50, state: 'blocked' })
    assert.equal(await end(await note(1)), 'done')
    assert.deepEqual(await end(await note(2)), [
      'filtered',
      'not-allowed',
      'user2 has the role triage in group/app, and who is write',
    ])
    assert.match(String(await end(await note(3))), /user3 has no role in group\/app/)
    assert.match(String(await end(await note(4))), /it is not known .* no such member/)
  })

  it('lets nobody replace what waits who may not start it', async () => {
    const waiting = await post('/quiet', 'issue_comment', comment('writer'))
    const byReader = await post('/quiet', 'issue_comment', comment('reader'))
    assert.equal((await untilFinished(daemon, byReader)).code, 'not-allowed')
    assert.equal((await daemon.client.get<EventDetail>(`/events/${waiting}`)).state, 'queued')
    const newer = await post('/quiet', 'issue_comment', comment('boss'))
    const { code, detail } = await untilFinished(daemon, waiting)
    assert.deepEqual(
      [code, detail],
      ['superseded', `a newer event replaced it before its turn came: ${newer}`],
    )
    await daemon.client.post(`/events/${newer}/cancel`)
  })

  it('is not asked where the owner runs an event again', async () => {
    const id = await post('/usual', 'issue_comment', comment('reader'))
    assert.equal((await untilFinished(daemon, id)).code, 'not-allowed')
    const again = await run(['events', 'retry', id, '--again'], { home: daemon.home })
    assert.equal(again.code, 0, again.stderr)
    assert.equal((await untilFinished(daemon, id)).state, 'done')
  })

  describe('in the configuration', () => {
    const check = async (rule: string, scheme = 'github', gateway = '{}\n') => {
      const home = await temporaryHome({
        env: `HOOK_SECRET=${secret}\n`,
        gateway,
        webhooks: `webhooks:\n  - path: /a\n    signature_scheme: ${scheme}\n    secret_env: HOOK_SECRET\n    agent: echo\n    prompt_template: ran\n${rule}`,
      })
      await writeFile(join(home.config, 'agents.yaml'), 'agents: { echo: { kind: echo } }\n')
      const { stdout, stderr } = await run(['config', 'check'], { home })
      return stdout + stderr
    }

    it('is refused where it cannot be asked', async () => {
      assert.match(
        await check('    who: write\n', 'stripe'),
        /only GitHub and GitLab are asked for roles, and signature_scheme is stripe/,
      )
      assert.match(
        await check('    who: [ada]\n', 'stripe'),
        /deliveries with signature_scheme stripe do not say who started them/,
      )
      assert.match(await check('    who: [ada, write]\n'), /write is a role/)
      assert.match(
        await check('    who: anyone\n    allowed_bots: [renovate]\n'),
        /has no effect with who: anyone/,
      )
      assert.doesNotMatch(await check('    who: [U024BE7LH]\n', 'slack'), /who/)
    })

    it('warns where no login can ask', async () => {
      const warning =
        /only who has the role write may start it, and no login can ask github for roles/
      assert.match(await check('    on: issue_comment.created\n'), warning)
      assert.match(await check('    who: write\n'), warning)
      assert.doesNotMatch(await check('    on: pull_request.opened\n'), /role/)
      assert.doesNotMatch(await check('    on: issue_comment.created\n    who: [ada]\n'), /role/)
    })
  })
})
