import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { isRemoteShell, tunnelCommand } from '../../../cli/commands/oauth/login-help.ts'
import { clock, shellWord } from '../../../cli/terminal/format.ts'

describe('cli: what is shown to be copied', () => {
  it('makes one word of a shell of whatever a provider calls a scope', function () {
    if (process.platform === 'win32') return this.skip()
    for (const text of ["$(touch x)';id", 'a b', '`id`', 'repo', "it's", '!x', '*'])
      assert.equal(
        execFileSync('sh', ['-c', `printf %s ${shellWord(text)}`]).toString(),
        text,
        text,
      )
  })

  it('shows the way back over ssh, to the address and port that this shell came by', () => {
    const place = { user: 'ada', hostname: 'box' }
    const cases = [
      ['203.0.113.9 5000 203.0.113.5 22', 'ssh -N -L 53174:127.0.0.1:53174 ada@203.0.113.5'],
      ['::1 5000 2001:db8::1 2222', 'ssh -N -L 53174:127.0.0.1:53174 -p 2222 ada@2001:db8::1'],
      ['', 'ssh -N -L 53174:127.0.0.1:53174 ada@box'],
      ['a b $(id) x', 'ssh -N -L 53174:127.0.0.1:53174 ada@box'],
    ] as const
    for (const [connection, command] of cases)
      assert.equal(tunnelCommand('53174', { SSH_CONNECTION: connection }, place), command)
    assert.match(
      tunnelCommand('1', {}, { user: "o'neil $x", hostname: 'box' }),
      / 'o'\\''neil \$x@box'$/,
    )
  })

  it('knows a shell that came over ssh', () => {
    assert.equal(isRemoteShell({ SSH_CONNECTION: 'a 1 b 2' }), true)
    assert.equal(isRemoteShell({ SSH_TTY: '/dev/pts/0' }), true)
    assert.equal(isRemoteShell({ SSH_CONNECTION: '', SSH_AUTH_SOCK: '/x' }), false)
  })

  it('shows passed time as a stopwatch does', () => {
    const cases = [
      [-1, '0:00'],
      [12_900, '0:12'],
      [600_000, '10:00'],
      [3_723_000, '1:02:03'],
    ] as const
    for (const [ms, text] of cases) assert.equal(clock(ms), text)
  })
})
