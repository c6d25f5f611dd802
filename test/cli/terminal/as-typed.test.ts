import assert from 'node:assert/strict'
import { asInvoked } from '../../../cli/terminal/terminal.ts'
import { temporaryHome } from '../../support/temporary.ts'
import { run } from '../support/cli.ts'

describe('hints', () => {
  const exec = { npm_command: 'exec' }

  it('name the command as it was typed under npx, and nothing else', () => {
    assert.equal(asInvoked('run doorward daemon start', exec), 'run npx doorward daemon start')
    assert.equal(asInvoked('doorward oauth list', {}), 'doorward oauth list')
    for (const text of ['doorward: no', 'npm/doorward x']) assert.equal(asInvoked(text, exec), text)
  })

  it('do so when a command fails', async () => {
    const home = await temporaryHome()
    const { code, stderr } = await run(['events', '--no-start'], { home, env: exec })
    assert.equal(code, 3)
    assert.match(stderr, /hint: npx doorward daemon start/)
  })
})
