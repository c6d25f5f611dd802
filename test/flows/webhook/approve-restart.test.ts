import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { run } from '../../cli/support/cli.ts'
import { untilFinished } from '../../support/daemon/daemon.ts'
import { restart } from '../../support/daemon/restart.ts'
import {
  deliver,
  eventOf,
  inService,
  restartedDaemons,
} from '../../support/daemon/restarted-daemons.ts'

const webhooks = `
webhooks:
  - path: /a
    agent: echo
    prompt_template: 'answer'
    deliver_to: 'file:answers.md'
    approve: { when: [file] }
`

describe('an answer that waits for an approval while the daemon ends', () => {
  const { start } = restartedDaemons()

  const untilWaiting = async (client: Client, id: string): Promise<EventDetail> => {
    const event = await eventOf(client, id)
    return event.state === 'waiting' ? event : untilWaiting(client, id)
  }

  it('outlives a restart, and is named by the stop that loses it', async () => {
    const old = await start({ webhooks })
    const first = await deliver(old.url, { n: 1 })
    const second = await deliver(old.url, { n: 2 })
    const before = await untilWaiting(old.client, first.id)
    await untilWaiting(old.client, second.id)
    await restart(old.client)
    const now = await inService(old)
    const { state, approval, targets } = await eventOf(now.client, first.id)
    assert.deepEqual([state, approval, targets], ['waiting', before.approval, before.targets])
    await now.client.post(`/events/${first.id}/approve`, {})
    assert.equal((await untilFinished(now, first.id)).state, 'done')
    const written = await readFile(join(old.home.root, 'answers.md'), 'utf8')
    assert.equal(written.match(/^answer$/gm)?.length, 1)
    now.client.close()
    const stopped = await run(['daemon', 'stop'], { home: old.home })
    assert.match(stopped.stderr, /lost with the stop: 1 answer/)
    assert.match(stopped.stderr, new RegExp(`dropped ${second.id}`))
  })
})
