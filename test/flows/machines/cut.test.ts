import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type RunningDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type Followed, followEvents } from '../../support/daemon/events.ts'
import { newQueueKey, startMachine, startMachineUnder } from '../../support/daemon/machines.ts'
import { send } from '../../support/servers/http.ts'
import { type Network, startNetwork } from '../../support/servers/network.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { untilText } from '../../support/until-text.ts'

describe('a network that is cut between the broker and a worker', () => {
  let network: Network
  let folder: string
  let receiver: RunningDaemon
  let followed: Followed
  const running: { readonly stop: () => Promise<unknown> }[] = []

  /** Writes the prompt into a file with its name, and waits for one that the test writes. */
  const agents = (name: string) => {
    const script = `cat > ${folder}/${name}; until [ -e ${folder}/go-$(cat ${folder}/${name}) ]; do sleep 0.05; done; echo well`
    return `agents:\n  slow: { kind: command, command: [sh, -c, ${JSON.stringify(script)}] }\n`
  }
  before(async () => {
    network = await startNetwork()
    folder = await temporaryFolder()
    const { url: servers } = network.broker
    const shared = { key: newQueueKey(), lostAfter: '2s', role: 'worker' } as const
    receiver = await startMachine({
      ...shared,
      servers,
      role: 'receiver',
      agents: agents('nobody'),
      webhooks: 'webhooks:\n  - { path: /slow, agent: slow, prompt_template: "{{event.name}}" }\n',
    })
    followed = await followEvents(receiver)
    running.push(
      receiver,
      await startMachineUnder(network.under, {
        ...shared,
        servers: network.url,
        agents: agents('far'),
      }),
    )
    startNear = async () => startMachine({ ...shared, servers, agents: agents('near') })
  })
  let startNear: () => Promise<RunningDaemon>
  after(async () => {
    followed.close()
    for (const { stop } of running.toReversed()) await stop()
    await network.close()
  })

  const accepted = async (name: string): Promise<string> => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${receiver.url}/slow`, { headers, body: JSON.stringify({ name }) })
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  const finish = async (id: string, name: string) => {
    await writeFile(join(folder, `go-${name}`), '')
    const { state, result } = await untilFinished(receiver, id)
    assert.deepEqual([state, result?.trim()], ['done', 'well'])
  }

  it('runs again elsewhere, marked, what that worker had, which takes part when it is back', async () => {
    const id = await accepted('first')
    await untilText(folder, 'far', /first/)
    network.cut()
    const near = await startNear()
    await untilText(folder, 'near', /first/)
    await followed.next(
      ({ id: of, state, attempts, detail }) =>
        of === id &&
        state === 'running' &&
        attempts === 2 &&
        /may have run before/.test(detail ?? ''),
    )
    await finish(id, 'first')
    network.restore()
    assert.equal(await near.stop(), 0)
    const next = await accepted('second')
    await untilText(folder, 'far', /second/)
    await finish(next, 'second')
  })
})
