import assert from 'node:assert/strict'
import { createDeliveryWaiters } from '../../../daemon/webhook/payload-shape.ts'

describe('those who wait for a delivery', () => {
  it('are not waited for who have gone before they began, nor who go meanwhile', async () => {
    const learners = createDeliveryWaiters()
    const going = new AbortController()
    const meanwhile = learners.wait('/a', going.signal)
    going.abort()
    for (const wait of [meanwhile, learners.wait('/a', AbortSignal.abort())])
      await assert.rejects(wait, { code: 'interrupted' })
  })

  it('see the next delivery of their webhook, once', async () => {
    const learners = createDeliveryWaiters()
    const { signal } = new AbortController()
    const [one, other] = [learners.wait('/a', signal), learners.wait('/b', signal)]
    learners.show('/a', { action: 'opened' }, () => [])
    learners.show('/a', { other: 1 }, () => [])
    const paths = [{ path: 'action', type: 'text' }]
    assert.deepEqual(
      { ...(await one), promptTemplate: '' },
      {
        webhook: '/a',
        paths,
        cut: false,
        filter: ['action'],
        promptTemplate: '',
      },
    )
    learners.close()
    await assert.rejects(other, { code: 'stopping' })
  })
})
