import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { followEvents } from '../../support/daemon/events.ts'
import { restart, untilLockMoves } from '../../support/daemon/restart.ts'
import {
  deliver,
  echoWebhook,
  inService,
  restartedDaemons,
} from '../../support/daemon/restarted-daemons.ts'
import { untilText } from '../../support/until-text.ts'

describe('a restart whose old daemon is killed', () => {
  const { start, startWithHeldAgent } = restartedDaemons()

  it('ends with the new daemon serving when the old one is killed before the sockets are passed', async () => {
    for (const at of ['starting', 'locked'] as const) {
      const old = await start({ webhooks: echoWebhook, gateway: 'oauth: { callback_port: 0 }\n' })
      const pid = old.process.pid ?? 0
      const broken = assert.rejects(restart(old.client))
      const killed =
        at === 'locked'
          ? untilLockMoves(old.home, pid)
          : untilText(old.home.logs, 'daemon.log', /"restarting"/)
      await killed
      old.process.kill('SIGKILL')
      await broken
      const moved = await untilLockMoves(old.home, pid)
      await untilText(old.home.run, 'daemon.json', new RegExp(`"pid":${moved},`))
      const now = await inService(old)
      // Any free port was asked for, so where the socket was not passed it is another one.
      await deliver(now.client.daemon.url)
      now.client.close()
    }
  })

  it('drops the events that the killed daemon still ran, and can retry them', async () => {
    const { agent, daemon: old } = await startWithHeldAgent()
    const { id } = await deliver(old.url, { n: 1 })
    await agent.next()
    await restart(old.client)
    const now = await inService(old)
    const stream = await followEvents(now)
    old.process.kill('SIGKILL')
    const dropped = await stream.next((record) => record.id === id && record.state === 'dropped')
    assert.equal(dropped.code, 'event-dropped')
    await now.client.post(`/events/${id}/retry`)
    ;(await agent.next()).answer('second try')
    const done = await stream.next((record) => record.id === id && record.state === 'done')
    assert.equal(done.resultPreview, 'second try')
    stream.close()
    now.client.close()
  })

  it('delivers in the new daemon, without its agent, a retry that waited in the old one', async () => {
    const { agent, daemon: old } = await startWithHeldAgent(
      ', deliver_to: "file:no/such/folder.md"',
    )
    await writeFile(join(old.home.root, 'no'), 'a file, no folder')
    const stream = await followEvents(old)
    const { id } = await deliver(old.url, { n: 1 })
    ;(await agent.next()).answer('the only answer')
    await stream.next((record) => record.id === id && record.state === 'failed')
    const { id: running } = await deliver(old.url, { n: 2 })
    await agent.next()
    await old.client.post(`/events/${id}/retry`)
    stream.close()
    await restart(old.client)
    const now = await inService(old)
    const after = await followEvents(now)
    old.process.kill('SIGKILL')
    await after.next((record) => record.id === running && record.state === 'dropped')
    const ended = await after.next((record) => record.id === id && record.state === 'failed')
    assert.deepEqual([ended.stage, ended.attempts], ['deliver', 2])
    after.close()
    now.client.close()
  })
})
