import assert from 'node:assert/strict'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError } from '../../../shared/errors.ts'
import { CaughtUp } from '../../support/daemon/caught-up.ts'
import type { Answer } from '../../support/servers/target-server.ts'
import { type HookServer, startHookServer } from '../../support/servers/hook-api.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

const gatewayOf = ({ apiUrl }: HookServer) => `targets: { github: { api_url: "${apiUrl}" } }\n`

describe('catching up with what goes wrong', () => {
  let server: HookServer
  let hook: HookServer['hooks'][number]
  const machines: CaughtUp[] = []

  beforeEach(async () => {
    server = await startHookServer()
    hook = server.addHook('acme/door', 'https://gateway.example/github')
  })
  afterEach(() => {
    for (const { stop } of machines.splice(0)) stop.abort()
    server.close()
  })

  const start = async (catchUp: string, hookId = 1000): Promise<CaughtUp> => {
    const source = `provider: github, repository: acme/door, hook_id: ${hookId}, ${catchUp}`
    const webhooks = `webhooks:
  - path: /github
    agent: echo
    prompt_template: x
    signature_scheme: github
    secret_env: SECRET
    source: { ${source} }
`
    machines.push(await CaughtUp.start(webhooks, gatewayOf(server)))
    return machines.at(-1) as CaughtUp
  }
  const miss = (number: number, more: object = {}) =>
    server.miss(hook, { payload: { action: 'opened', number }, ...more })
  const numbers = ({ accepted }: CaughtUp) =>
    accepted.map(({ bytes }) => (JSON.parse(bytes.toString()) as { number: number }).number)

  it('goes by the clock of the sender, whatever ours says, and finds what is listed late', async () => {
    for (const wrongMs of [-9 * 24 * hourMs, 9 * 24 * hourMs]) {
      const own = await start('catch_up: all')
      own.nowMs += wrongMs
      miss(1)
      miss(2, { minutesLate: 4 })
      await own.pass(minuteMs)
      assert.deepEqual(numbers(own), [1])
      server.aheadMs += 5 * minuteMs
      await own.pass(5 * minuteMs)
      assert.deepEqual(numbers(own), [1, 2])
      // Set right again while it runs.
      own.nowMs -= wrongMs
      miss(3)
      await own.pass(minuteMs)
      assert.deepEqual(numbers(own), [1, 2, 3])
      own.stop.abort()
      hook.deliveries.splice(0)
    }
  })

  it('says that more than 10,000 are not read, and from when they are', async () => {
    const own = await start('catch_up: ask')
    for (let number = 0; number < 10_050; number += 1) miss(number)
    const [missed] = await own.catchUp.list(true)
    assert.equal(missed?.waiting.length, 10_000)
    assert.match(
      own.told().join(),
      /had more than 10,000 deliveries: those before \d{4}-.* are left out/,
    )
  })

  it('says which details are gone after three days, and runs the others', async () => {
    const own = await start('catch_up: ask')
    miss(1)
    await own.catchUp.list(true)
    server.aheadMs += 3 * 24 * hourMs
    miss(2)
    await own.catchUp.tick()
    const { refused } = await own.catchUp.decide({ do: 'run' })
    assert.equal(refused, 1)
    assert.match(
      own.told().join(),
      /1 missed delivery of acme\/door .*: GitHub no longer has the details/,
    )
    await own.catchUp.list(true)
    await own.catchUp.decide({ do: 'run' })
    assert.deepEqual([numbers(own), own.problems()], [[2], []])
  })

  it('goes on by itself where details could not be read, or the queue was full', async () => {
    const own = await start('catch_up: all')
    for (const number of [1, 2, 3]) miss(number)
    own.refusals.push(new DoorwardError('queue-full', 'the queue is full'))
    await own.pass(hourMs)
    assert.match(own.told().join(), /0 run, 3 waiting .*; the queue is full/)
    await own.pass(5 * minuteMs)
    assert.deepEqual(numbers(own), [1, 2, 3])
    server.failing = /deliveries.\d/
    miss(4)
    await own.pass(hourMs)
    assert.match(own.told().join(), /0 run, 1 waiting .*; GitHub answered 500/)
    assert.match(own.problems().join(), /1 missed delivery.*,.*GitHub answered 500/)
    server.failing = undefined
    await own.pass(hourMs)
    assert.deepEqual([numbers(own), own.problems()], [[1, 2, 3, 4], []])
  })

  it('says that the token lost its scope, and reads on once it has it again', async () => {
    const own = await start('catch_up: all')
    miss(1)
    server.scopes = ['gist']
    await own.pass(hourMs)
    const [problem] = own.catchUp.problems()
    assert.match(problem?.detail ?? '', /lacks admin:repo_hook/)
    assert.equal(problem?.hint, 'doorward oauth login github --scopes gist,admin:repo_hook')
    server.scopes = ['admin:repo_hook']
    await own.pass(hourMs)
    assert.deepEqual([numbers(own), own.problems()], [[1], []])
  })

  it('says that the hook is switched off or deleted at the sender, and how to make it again', async () => {
    const own = await start('catch_up: ask')
    hook.active = false
    await own.pass(hourMs)
    const [off] = own.catchUp.problems()
    assert.deepEqual(
      [off?.detail, off?.hint],
      [
        'acme/door: the hook is switched off at GitHub',
        'switch it on: doorward webhook connect github acme/door --path /github',
      ],
    )
    hook.active = true
    await own.pass(hourMs)
    assert.deepEqual(own.problems(), [])
    server.hooks.splice(0)
    await own.pass(hourMs)
    const [gone] = own.catchUp.problems()
    assert.match(gone?.detail ?? '', /cannot be read: GitHub answered 404/)
    assert.match(gone?.hint ?? '', /the hook was deleted/)
  })

  it('runs on each of two machines what its own hook was sent, and of one hook nothing twice', async () => {
    server.addHook('acme/door', 'https://other.example/github')
    const own = await start('catch_up: all')
    const other = await start('catch_up: all', 1001)
    const same = await start('catch_up: all')
    miss(1)
    await own.pass(hourMs)
    await other.pass(hourMs)
    assert.deepEqual([numbers(own), numbers(other)], [[1], []])
    // A daemon took it, and this one did not.
    miss(2, { code: 202 })
    await own.pass(hourMs)
    await same.pass(hourMs)
    assert.deepEqual([numbers(own), numbers(same)], [[1], [1]])
  })

  it('reads the other hooks and goes on, however long or deep an answer is', async () => {
    const own = await start('catch_up: all')
    server.addHook('acme/door', 'https://other.example/github')
    own.definitions += own.definitions
      .replace('webhooks:\n', '')
      .replace('/github', '/other')
      .replace('1000', '1001')
    await own.pass(hourMs)
    miss(1)
    const deep = `[{"id":7,"x":${'['.repeat(100_000)}${']'.repeat(100_000)}}]`
    const long = `[${'{"id":1,"guid":"g","delivered_at":"9999-01-01T00:00:00Z","event":"x"},'.repeat(200_000)}7]`
    server.next(
      ...[long, deep].map(
        (body): Answer =>
          (response) =>
            void response.end(body),
      ),
    )
    const listed = server.requests.length
    await own.pass(2 * hourMs)
    assert.deepEqual(numbers(own), [1])
    assert.ok(server.requests.slice(listed).some(({ path }) => path.includes('/1001/deliveries')))
  })

  it('says why it does not know what is finished, and not that nothing was missed', async () => {
    const own = await start('catch_up: ask')
    own.stop.abort()
    await chmod(join(own.folder, 'catch-up'), 0o644)
    const next = await CaughtUp.start(own.definitions, gatewayOf(server), own.folder)
    machines.push(next)
    miss(1)
    await assert.rejects(next.catchUp.list(true), /catch-up is open to other users/)
    await chmod(join(own.folder, 'catch-up'), 0o600)
    assert.equal((await next.catchUp.list(true))[0]?.waiting.length, 1)
  })
})
