import assert from 'node:assert/strict'
import { CaughtUp } from '../../support/daemon/caught-up.ts'
import {
  type GitlabHookServer,
  startGitlabHookServer,
} from '../../support/servers/gitlab-hook-api.ts'
import { json } from '../../support/servers/target-server.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMinutes = 24 * 60

describe('deliveries of GitLab that did not arrive', () => {
  let server: GitlabHookServer
  let own: CaughtUp

  beforeEach(async () => {
    server = await startGitlabHookServer()
  })
  afterEach(() => {
    own.stop.abort()
    server.close()
  })

  const start = async (repository: string, catchUp: string): Promise<CaughtUp> => {
    const webhooks = `webhooks:
  - path: /gitlab
    agent: echo
    prompt_template: x
    signature_scheme: gitlab
    secret_env: SECRET
    on: [merge_request.open, push]
    source: { provider: gitlab, repository: ${repository}, hook_id: 10, ${catchUp} }
`
    own = await CaughtUp.start(webhooks, `targets: { gitlab: { api_url: "${server.apiUrl}" } }\n`)
    return own
  }
  const request = (iid: number, action = 'open') => ({
    object_kind: 'merge_request',
    object_attributes: { iid, action },
  })
  const numbers = () =>
    own.accepted.map(({ bytes }) => {
      const { object_attributes: at } = JSON.parse(bytes.toString()) as ReturnType<typeof request>
      return at.iid
    })

  it('are found in the pages of its list, for a project and for a group, and run with their id', async () => {
    for (const repository of ['acme/tools/door', 'acme']) {
      server.hooks.splice(0)
      const hook = server.addHook(repository, 'https://gateway.example/gitlab')
      await start(repository, 'catch_up: all, at_most: 3')
      const key = server.miss(hook, { payload: request(0) })
      for (let iid = 1; iid < 50; iid += 1) server.miss(hook, { payload: request(iid) })
      for (let count = 0; count < 30; count += 1)
        server.miss(hook, { payload: request(99, 'update') })
      await own.pass(hourMs)
      assert.deepEqual(numbers(), [0, 1, 2])
      const { rawHeaders = [] } = own.accepted[0] ?? {}
      assert.ok(rawHeaders.includes(key))
      assert.ok(!rawHeaders.some((text) => /token|redacted/i.test(text)))
      assert.match(own.problems().join(), /^47 missed deliveries of acme/)
      own.stop.abort()
    }
  })

  it('are found on a later page when more came since, and for seven days', async () => {
    const hook = server.addHook('acme', 'https://gateway.example/gitlab')
    await start('acme', 'catch_up: ask')
    const [missed, lost] = [1, 2].map((iid) => server.miss(hook, { payload: request(iid) }))
    assert.ok(missed && lost)
    await own.catchUp.list(true)
    hook.events.splice(0, 1)
    for (let count = 0; count < 45; count += 1) server.miss(hook, { payload: request(3, 'close') })
    assert.deepEqual(await own.catchUp.decide({ do: 'run' }), {
      run: 1,
      refused: 1,
      skipped: 0,
      waiting: 0,
    })
    assert.deepEqual(numbers(), [1])
    assert.match(
      own.told().join(),
      /1 missed delivery of acme .*: GitLab no longer has the details/,
    )
    server.miss(hook, { payload: request(4), minutesAgo: 8 * dayMinutes })
    server.miss(hook, { payload: { oversize: true }, trigger: 'push_hooks' })
    const [left] = await own.catchUp.list(true)
    assert.deepEqual(
      left?.waiting.map(({ event, answer }) => [event, answer]),
      [['push', 'internal error']],
    )
    assert.equal((await own.catchUp.decide({ do: 'run' })).refused, 1)
  })

  it('says what GitLab answers, and that it switched the hook off', async () => {
    const hook = server.addHook('acme', 'https://gateway.example/gitlab')
    await start('acme', 'catch_up: all')
    hook.alertStatus = 'temporarily_disabled'
    await own.pass(hourMs)
    assert.match(own.problems().join(), /acme: the hook is switched off at GitLab/)
    hook.alertStatus = 'executable'
    server.next(json(429, {}, { 'retry-after': '600' }))
    await own.pass(hourMs)
    assert.match(own.problems().join(), /cannot be read: GitLab rate limit reached \(429\)/)
    const before = server.requests.length
    await own.pass(9 * minuteMs)
    assert.equal(server.requests.length, before)
    server.hasScope = false
    await own.pass(hourMs)
    assert.match(own.problems().join(), /it lacks api/)
    server.hasScope = true
    server.miss(hook, { payload: request(7) })
    // Another machine took it.
    server.miss(hook, { payload: request(8), status: '202' })
    await own.pass(hourMs)
    assert.deepEqual([numbers(), own.problems()], [[7], []])
  })
})
