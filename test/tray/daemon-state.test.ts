import assert from 'node:assert/strict'
import { version } from '../../shared/version.ts'
import {
  type DaemonView,
  answered,
  failed,
  startFailed,
  starting,
  unknownDaemon,
} from '../../tray/daemon-state.ts'
import { statusWith } from '../support/fake-daemon.ts'

const absent = { reason: 'Daemon not running', runs: false }
const hung = { reason: 'The daemon (pid 5) does not answer', runs: true }
const at = (steady: number, wall = 0) => ({ steady, wall })
const reasonOf = ({ view }: DaemonView): string =>
  view.state === 'unreachable' ? view.reason : view.state
const problemsOf = ({ view }: DaemonView): string[] =>
  view.state === 'connected' ? view.status.problems.map(({ detail }) => detail) : [view.state]

describe('what is known of the daemon', () => {
  it('has patience with one that was just started, and none with one that hangs', () => {
    const started = starting(at(1000))
    assert.equal(reasonOf(failed(started, absent, at(2000))), 'connecting')
    assert.equal(reasonOf(failed(started, absent, at(60_000))), absent.reason)
    assert.equal(reasonOf(failed(started, hung, at(2000))), hung.reason)
  })

  it('has the same patience when the clock is set back or forward by hours', () => {
    const started = starting(at(1000, 9e12))
    assert.equal(reasonOf(failed(started, absent, at(2000, 99e12))), 'connecting')
    assert.equal(reasonOf(failed(started, absent, at(60_000, 1))), absent.reason)
  })

  it('keeps saying why one did not start, until there is one', () => {
    const broken = startFailed(starting(at(1000)), 'port 18789 is taken')
    assert.equal(reasonOf(broken), 'Daemon did not start: port 18789 is taken')
    assert.equal(reasonOf(failed(broken, absent, at(1500))), reasonOf(broken))
    assert.equal(reasonOf(failed(broken, hung, at(1500))), hung.reason)
    const met = answered(statusWith(), at(1600))
    assert.equal(reasonOf(failed(met, absent, at(1700))), absent.reason)
  })

  it('says why one that was started again did not start', () => {
    const gone = failed(answered(statusWith(), at(7)), absent, at(9))
    const broken = startFailed(startFailed(gone, 'port 18789 is taken'), 'config/agents.yaml:1:1 x')
    assert.equal(reasonOf(broken), 'Daemon did not start: config/agents.yaml:1:1 x')
    assert.equal(reasonOf(failed(broken, absent, at(10))), reasonOf(broken))
    assert.equal(broken.lastSeen, gone.lastSeen)
  })

  it('does not call it a failed start when another one answers', () => {
    const running = answered(statusWith(), at(2000))
    assert.equal(startFailed(running, 'it runs already'), running)
  })

  it('remembers when it was last seen, and whether one runs', () => {
    const gone = failed(answered(statusWith(), at(7)), absent, at(9))
    assert.deepEqual(gone.view, {
      state: 'unreachable',
      reason: 'Daemon not running',
      runs: false,
      lastSeen: '1970-01-01T00:00:00.000Z',
    })
    const silent = failed(unknownDaemon, hung, at(9))
    assert.deepEqual(silent.view, { state: 'unreachable', reason: hung.reason, runs: true })
  })

  it('says that the versions differ, and which of the two to start again', () => {
    const met = (theirs: string) => problemsOf(answered(statusWith({ version: theirs }), at(0)))
    const about = (theirs: string, which: string) =>
      `the daemon is version ${theirs}, the tray ${version}: start the ${which} again`
    assert.deepEqual(met(version), [])
    assert.deepEqual(met('0.0.9'), [about('0.0.9', 'daemon')])
    assert.deepEqual(met('0.10.0'), [about('0.10.0', 'tray')])
    assert.deepEqual(met('12.0.0-beta.1'), [about('12.0.0-beta.1', 'tray')])
  })
})
