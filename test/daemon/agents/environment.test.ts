import assert from 'node:assert/strict'
import { cleanEnvironment } from '../../../daemon/agents/environment.ts'

const ours = {
  PATH: '/bin',
  HOME: '/home/a',
  LC_ALL: 'C',
  TZ: 'UTC',
  GITHUB_WEBHOOK_SECRET: 'canary',
  ANTHROPIC_API_KEY: 'key',
  DOORWARD_HOME: '/x',
  NODE_OPTIONS: '--inspect',
  LD_PRELOAD: 'evil.so',
  http_proxy: 'http://user:canary@proxy',
}

describe('cleanEnvironment', () => {
  it('passes a short list and nothing else', () => {
    assert.deepEqual(cleanEnvironment(ours, {}), {
      PATH: '/bin',
      HOME: '/home/a',
      LC_ALL: 'C',
      TZ: 'UTC',
    })
  })

  it('adds the values of the entry, and variables of ours that it names', () => {
    const clean = cleanEnvironment(ours, { A: 'env:ANTHROPIC_API_KEY', B: 'plain', PATH: '/opt' })
    assert.deepEqual([clean['A'], clean['B'], clean['PATH']], ['key', 'plain', '/opt'])
    assert.ok(!('ANTHROPIC_API_KEY' in clean))
  })

  it('leaves out an unset variable, also one that all objects inherit', () => {
    const clean = cleanEnvironment(ours, { A: 'env:NOTHING', B: 'env:toString', C: 'env:' })
    assert.deepEqual([clean['A'], clean['B'], clean['C']], [undefined, undefined, undefined])
  })

  it('keeps the search path in the spelling of Windows', () => {
    const clean = cleanEnvironment({ Path: 'C:\\bin', ComSpec: 'cmd.exe' }, {})
    assert.deepEqual(clean, { Path: 'C:\\bin', ComSpec: 'cmd.exe' })
  })
})
