import assert from 'node:assert/strict'
import { version } from '../../shared/version.ts'
import {
  type DaemonState,
  afterStatus,
  afterLoss,
  afterStartFailure,
  afterStart,
  initialDaemonState,
} from '../../tray/daemon-state.ts'
import { statusWith } from '../support/daemon/fake-daemon.ts'

const absent = { reason: 'Daemon not running', isRunning: false }
const hung = { reason: 'The daemon (pid 5) does not answer', isRunning: true }
const at = (steady: number, wall = 0) => ({ steady, wall })
const failed = (detail: string) => ({ code: 'daemon-unreachable' as const, detail })
const reasonOf = ({ view }: DaemonState): string =>
  view.state === 'unreachable' ? view.reason : view.state
const problemsOf = ({ view }: DaemonState): string[] =>
  view.state === 'connected' ? view.status.problems.map(({ detail }) => detail) : [view.state]

describe('the state of the daemon', () => {
  it('waits for a daemon that was just started, but not for one that hangs', () => {
    const started = afterStart(at(1000))
    assert.equal(reasonOf(afterLoss(started, absent, at(2000))), 'connecting')
    assert.equal(reasonOf(afterLoss(started, absent, at(60_000))), absent.reason)
    assert.equal(reasonOf(afterLoss(started, hung, at(2000))), hung.reason)
  })

  it('waits as long when the clock is set back or forward by hours', () => {
    const started = afterStart(at(1000, 9e12))
    assert.equal(reasonOf(afterLoss(started, absent, at(2000, 99e12))), 'connecting')
    assert.equal(reasonOf(afterLoss(started, absent, at(60_000, 1))), absent.reason)
  })

  it('keeps the reason of a failed start until a daemon answers', () => {
    const broken = afterStartFailure(afterStart(at(1000)), failed('port 18789 is taken'))
    assert.equal(reasonOf(broken), 'Daemon did not start: port 18789 is taken')
    assert.equal(reasonOf(afterLoss(broken, absent, at(1500))), reasonOf(broken))
    assert.equal(reasonOf(afterLoss(broken, hung, at(1500))), hung.reason)
    const connected = afterStatus(statusWith(), at(1600))
    assert.equal(reasonOf(afterLoss(connected, absent, at(1700))), absent.reason)
  })

  it('replaces the reason when a second start fails', () => {
    const lost = afterLoss(afterStatus(statusWith(), at(7)), absent, at(9))
    const broken = afterStartFailure(
      afterStartFailure(lost, failed('port 18789 is taken')),
      failed('config/agents.yaml:1:1 x'),
    )
    assert.equal(reasonOf(broken), 'Daemon did not start: config/agents.yaml:1:1 x')
    assert.equal(reasonOf(afterLoss(broken, absent, at(10))), reasonOf(broken))
    assert.equal(broken.lastSeen, lost.lastSeen)
  })

  it('ignores a failed start while another daemon answers', () => {
    const running = afterStatus(statusWith(), at(2000))
    assert.equal(afterStartFailure(running, failed('it runs already')), running)
  })

  it('keeps when the daemon was last seen', () => {
    const lost = afterLoss(afterStatus(statusWith(), at(7)), absent, at(9))
    assert.deepEqual(lost.view, {
      state: 'unreachable',
      reason: 'Daemon not running',
      lastSeen: '1970-01-01T00:00:00.000Z',
    })
    const silent = afterLoss(initialDaemonState, hung, at(9))
    assert.deepEqual(silent.view, { state: 'unreachable', reason: hung.reason })
  })

  it('says that the versions differ, and which of the two to restart', () => {
    const problemsWith = (theirs: string) =>
      problemsOf(afterStatus(statusWith({ version: theirs }), at(0)))
    const about = (theirs: string, which: string) =>
      `the daemon is version ${theirs}, the tray ${version}: restart the ${which}`
    assert.deepEqual(problemsWith(version), [])
    assert.deepEqual(problemsWith('0.0.9'), [about('0.0.9', 'daemon')])
    assert.deepEqual(problemsWith('0.10.0'), [about('0.10.0', 'tray')])
    assert.deepEqual(problemsWith('12.0.0-beta.1'), [about('12.0.0-beta.1', 'tray')])
  })
})
