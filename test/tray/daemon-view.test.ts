import assert from 'node:assert/strict'
import { DoorwardError } from '../../shared/errors.ts'
import { answered, failed, startFailed, starting, unknownDaemon } from '../../tray/daemon-view.ts'
import { statusWith } from '../support/fake-daemon.ts'

const absent = new DoorwardError('daemon-unreachable', 'nobody there')
const reasonOf = ({ view }: ReturnType<typeof failed>): string =>
  view.state === 'unreachable' ? view.reason : view.state

describe('what is known of the daemon', () => {
  it('has patience with one that was just started', () => {
    const started = starting(1000)
    assert.equal(reasonOf(failed(started, absent, 2000)), 'connecting')
    assert.equal(reasonOf(failed(started, absent, 60_000)), 'Daemon not running')
  })

  it('keeps saying why one did not start', () => {
    const broken = startFailed(starting(1000), 'port 18789 is taken')
    assert.equal(reasonOf(broken), 'Daemon did not start: port 18789 is taken')
    assert.equal(reasonOf(failed(broken, absent, 1500)), reasonOf(broken))
  })

  it('does not call it a failed start when another one answers', () => {
    const running = answered(statusWith(), 2000)
    assert.equal(startFailed(running, 'it runs already'), running)
  })

  it('remembers when it was last seen', () => {
    const gone = failed(answered(statusWith(), 0), absent, 9)
    assert.deepEqual(gone.view, {
      state: 'unreachable',
      reason: 'Daemon not running',
      lastSeen: '1970-01-01T00:00:00.000Z',
    })
  })

  const others: [unknown, string][] = [
    [new DoorwardError('daemon-foreign', 'x'), 'Another program holds the port of the daemon'],
    [new DoorwardError('home-insecure', 'the token is open'), 'The token is open'],
    [new TypeError('secret inside'), 'Daemon cannot be reached'],
  ]
  for (const [error, reason] of others)
    it(`says: ${reason}`, () => {
      assert.equal(reasonOf(failed(unknownDaemon, error, 0)), reason)
    })
})
