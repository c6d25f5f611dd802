import assert from 'node:assert/strict'
import { steadyIcon } from '../../../tray/icon/icon.ts'

describe('steadyIcon', () => {
  it('shows running for a second before idle', () => {
    const running = steadyIcon(steadyIcon(undefined, 'idle', 0), 'running', 100)
    const held = steadyIcon(running, 'idle', 200)
    assert.deepEqual(held, { name: 'running', since: 100, nextAt: 1100 })
    assert.deepEqual(steadyIcon(held, 'idle', 1100), { name: 'idle', since: 1100 })
  })

  it('shows attention immediately', () => {
    const running = steadyIcon(undefined, 'running', 0)
    assert.equal(steadyIcon(running, 'needs-you', 1).name, 'needs-you')
  })
})
