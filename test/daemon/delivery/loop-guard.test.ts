import assert from 'node:assert/strict'
import { OwnMessages } from '../../../daemon/delivery/loop-guard.ts'

const [channel, ts] = ['C0123ABCD', '1503435956.000247']
const about = (event: object) => ({ type: 'event_callback', event: { channel, ...event } })

describe('the loop guard of Slack', () => {
  it('recognises its own messages by channel and ts, also after a change or removal', () => {
    const messages = new OwnMessages()
    assert.equal(messages.isOwnMessage(about({ type: 'message', ts })), false)
    messages.remember({ ok: true, channel, ts })
    for (const event of [
      { type: 'message', ts },
      { type: 'app_mention', ts },
      { type: 'message', subtype: 'message_changed', ts: '2.1', message: { ts } },
      { type: 'message', subtype: 'message_deleted', ts: '2.2', previous_message: { ts } },
    ])
      assert.equal(messages.isOwnMessage(about(event)), true)
  })

  it('ignores no message of others, also in answer to its own', () => {
    const messages = new OwnMessages()
    messages.remember({ ok: true, channel, ts })
    for (const answer of [{ ok: true }, { channel }, { ts }, null, 'x']) messages.remember(answer)
    for (const payload of [
      about({ type: 'message', ts: '1503435956.000248', thread_ts: ts }),
      about({ type: 'message', ts, channel: 'C9999ABCD' }),
      about({ type: 'message', ts: 1503435956.000247 }),
      about({ type: 'reaction_added', item: { channel, ts } }),
      { channel, ts },
      { event: null },
      { event: {} },
      [],
      null,
      'x',
    ])
      assert.equal(messages.isOwnMessage(payload), false)
  })

  it('remembers the newest thousand', () => {
    const messages = new OwnMessages()
    for (let place = 0; place <= 1000; place += 1)
      messages.remember({ channel, ts: `${place}.000001` })
    const isOwn = (place: number) => messages.isOwnMessage(about({ ts: `${place}.000001` }))
    assert.deepEqual([isOwn(0), isOwn(1), isOwn(1000)], [false, true, true])
  })

  it('waits for the response to a post, but not forever', async () => {
    const messages = new OwnMessages(20)
    assert.equal(messages.posted(), undefined)
    const answers: ((failed?: Error) => void)[] = []
    const post = async () =>
      messages.post(
        async () =>
          new Promise<void>((resolve, reject) => {
            answers.push((failed) => (failed ? reject(failed) : resolve()))
          }),
      )
    const posts = [post(), post()]
    // No response: the timeout ends the wait.
    await messages.posted()
    const posted = messages.posted()
    answers[0]?.()
    answers[1]?.(new Error('it broke off'))
    await posted
    assert.equal((await Promise.allSettled(posts))[1]?.status, 'rejected')
    assert.equal(messages.posted(), undefined)
  })
})
