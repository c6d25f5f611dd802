import assert from 'node:assert/strict'
import { getUserAgent, version } from '../../shared/version.ts'

describe('userAgentOf', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['oauth exec git', ' (oauth exec git)'],
    ['oauth exec a (b) \\) x', ' (oauth exec a b  x)'],
    ['oauth exec gít\r\nx: y\u001b[31m', ' (oauth exec gtx: y[31m)'],
    ['\u0000é', ''],
    ['', ''],
  ]
  for (const [what, comment] of cases)
    it(`makes a comment that cannot leave its header of ${JSON.stringify(what)}`, () => {
      assert.equal(getUserAgent('cli', what), `doorward-cli/${version}${comment}`)
    })

  it('cuts a long comment to 60 characters, and names the tray without one', () => {
    const agent = getUserAgent('cli', `oauth exec ${'x'.repeat(500)}`)
    assert.equal(agent.length, `doorward-cli/${version} ()`.length + 60)
    assert.equal(getUserAgent('tray'), `doorward-tray/${version}`)
  })
})
