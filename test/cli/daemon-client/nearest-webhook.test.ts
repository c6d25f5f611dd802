import assert from 'node:assert/strict'
import { nearestWebhook } from '../../../cli/daemon-client/webhooks.ts'

describe('cli: the webhook that was meant', () => {
  const paths = ['/webhook/github', '/webhook/all', '/stripe']
  for (const [given, meant] of [
    ['all', '/webhook/all'],
    ['/all', '/webhook/all'],
    ['webhook/all', '/webhook/all'],
    ['gihub', '/webhook/github'],
    ['/webhok/github', '/webhook/github'],
    ['/webhook/strpe', '/stripe'],
  ] as const)
    it(`by ${given} is ${meant}`, () =>
      assert.equal(nearestWebhook(given, paths), `did you mean "${meant}"?`))

  it('is none when nothing is near, or there is nothing', () => {
    assert.equal(nearestWebhook('something', paths), undefined)
    assert.equal(nearestWebhook('all', []), undefined)
  })
})
