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
  it('passes on a short list and nothing else', () => {
    assert.deepEqual(cleanEnvironment(ours, {}), {
      PATH: '/bin',
      HOME: '/home/a',
      LC_ALL: 'C',
      TZ: 'UTC',
    })
  })

  it('adds what the entry names: a value, or a variable of ours', () => {
    const clean = cleanEnvironment(ours, { A: 'env:ANTHROPIC_API_KEY', B: 'plain', PATH: '/opt' })
    assert.deepEqual([clean['A'], clean['B'], clean['PATH']], ['key', 'plain', '/opt'])
    assert.ok(!('ANTHROPIC_API_KEY' in clean))
  })

  it('leaves out a variable that is unset, also one that all objects inherit', () => {
    const clean = cleanEnvironment(ours, { A: 'env:NOTHING', B: 'env:toString', C: 'env:' })
    assert.deepEqual([clean['A'], clean['B'], clean['C']], [undefined, undefined, undefined])
  })

  it('keeps the search path as Windows writes its name', () => {
    const clean = cleanEnvironment({ Path: 'C:\\bin', ComSpec: 'cmd.exe' }, {})
    assert.deepEqual(clean, { Path: 'C:\\bin', ComSpec: 'cmd.exe' })
  })
})
