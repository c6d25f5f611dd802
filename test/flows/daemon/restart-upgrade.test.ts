import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { resultOf, start as startCli, stopStarted, untilSaid } from '../../cli/support/cli.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { untilExit } from '../../support/daemon/restart.ts'
import { daemonFile, deliver, restartedDaemons } from '../../support/daemon/restarted-daemons.ts'

describe('a restart over a daemon whose messages are of another version', () => {
  const { startWithHeldAgent } = restartedDaemons()

  it('lets it finish its events, then stops it and starts another', async () => {
    const { agent, daemon: old } = await startWithHeldAgent()
    const { handover, ...file } = await daemonFile(old.home)
    assert.equal(typeof handover, 'number')
    // As the version before wrote it.
    await writeFile(old.home.daemonJson, JSON.stringify(file))
    const stream = await followEvents(old)
    const { id } = await deliver(old.url, { n: 1 })
    const { id: waiting } = await deliver(old.url, { n: 2 })
    const first = await agent.next()
    const command = startCli(['daemon', 'restart'], { home: old.home })
    const ended = resultOf(command)
    await untilSaid(command, 'stderr', /waiting until it has finished 2 events/)
    first.answer('one')
    ;(await agent.next()).answer('two')
    for (const each of [id, waiting])
      await stream.next((record) => record.id === each && record.state === 'done')
    stream.close()
    const { code, stderr } = await ended
    assert.equal(code, 0, stderr)
    assert.match(stderr, /the running daemon cannot hand over to this version/)
    assert.equal(await untilExit(old), '0')
    const now = await daemonFile(old.home)
    assert.notEqual(now.pid, file.pid)
    assert.equal(now.handover, handover)
    await stopStarted(old.home)
  })
})
