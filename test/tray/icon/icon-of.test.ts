import assert from 'node:assert/strict'
import { getIconName } from '../../../tray/icon/icon.ts'
import type { View } from '../../../tray/view.ts'
import { eventWith } from '../../support/daemon/fake-daemon.ts'
import {
  connected,
  connecting,
  problem,
  provider,
  unreachable,
} from '../../support/desktop/views.ts'

describe('getIconName', () => {
  const failedRun = eventWith({ state: 'failed' })
  const running = { running: 1, waiting: 0, bytes: 0 }
  const cases: [string, View, string][] = [
    ['a daemon that is looked for', connecting, 'unreachable'],
    ['no daemon', unreachable, 'unreachable'],
    ['nothing to do', connected(), 'idle'],
    ['an agent at work', connected({ queue: running }), 'running'],
    ['a need during a run', connected({ queue: running, events: [failedRun] }), 'needs-you'],
    ['a failed run', connected({ events: [failedRun] }), 'needs-you'],
    ['a login', connected({ providers: [provider('slack', 'needs-login')] }), 'needs-you'],
    [
      'a secret of the wrong form',
      connected({ problems: [problem('secret-unusable', 'x')] }),
      'needs-you',
    ],
    [
      'advice during a run',
      connected({ queue: running, problems: [problem('secret-shape', 'x')] }),
      'running',
    ],
    [
      'a webhook without secret',
      connected({
        problems: [problem('webhook-unsigned', 'x'), problem('revocation-pending', 'y')],
      }),
      'idle',
    ],
  ]
  for (const [what, view, icon] of cases)
    it(`is ${icon} for ${what}`, () => {
      assert.equal(getIconName(view), icon)
    })
})
