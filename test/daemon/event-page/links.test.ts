import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { createEventLinks } from '../../../daemon/event-page/links.ts'

describe('links to pages of events', () => {
  it('open once, and then only with the key of the first use', () => {
    const links = createEventLinks(() => 0)
    const { code } = links.issue({ eventId: 'evt_1', notice: 'again' })
    assert.equal(links.isUnused(code), true)
    const opened = links.open(code, undefined)
    assert.deepEqual([opened?.eventId, opened?.notice], ['evt_1', 'again'])
    assert.equal(links.isUnused(code), false)
    assert.equal(links.open(code, undefined), undefined)
    assert.equal(links.open(code, 'x'), undefined)
    const again = links.open(code, opened?.key)
    assert.deepEqual([again?.eventId, again?.notice, again?.key], ['evt_1', undefined, opened?.key])
  })

  it('are valid for a minute, and their pages for an hour after they were last shown', () => {
    let now = 0
    const links = createEventLinks(() => now)
    const late = links.issue({ eventId: 'evt_1' })
    const { code } = links.issue({ eventId: 'evt_1' })
    now = 59_999
    const key = links.open(code, undefined)?.key
    now = 60_000
    assert.equal(links.open(late.code, undefined), undefined)
    for (const hour of [1, 2]) {
      now = 60_000 + hour * 3_500_000
      assert.equal(links.open(code, key)?.eventId, 'evt_1')
    }
    now += 3_600_000
    assert.equal(links.open(code, key), undefined)
  })

  it('are not buttons, which know whether they were pressed before', () => {
    const links = createEventLinks(() => 0)
    const code = links.issueButton('evt_1', 'cancel')
    const button = { eventId: 'evt_1', action: 'cancel' }
    assert.equal(links.open(code, undefined), undefined)
    assert.equal(links.takeButton(links.issue({ eventId: 'evt_1' }).code), undefined)
    assert.deepEqual(links.takeButton(code), { ...button, isFirst: true })
    assert.deepEqual(links.takeButton(code), { ...button, isFirst: false })
  })
})

describe('an expiring map', () => {})
