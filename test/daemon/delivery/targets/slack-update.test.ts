import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makeReply, deliverWith, resolveTargets } from '../../../support/servers/deliver.ts'
import { SlackServer } from '../../../support/servers/slack-server.ts'
import { temporaryFolder } from '../../../support/temporary.ts'

const thread = 'slack:C0123ABCD/1700000000.000100'
const about = (key: string) => ({ subject: { key, title: key, kind: 'pull request' } })

describe('an answer that replaces the earlier one in Slack', () => {
  let slack: SlackServer
  let homeFolder: string

  beforeEach(async () => {
    slack = await SlackServer.start()
    homeFolder = await temporaryFolder()
  })
  afterEach(async () => slack.close())

  /** Each call is a daemon of its own: nothing but the disk connects them. */
  const answer = async (text: string, target = thread, more: object = {}) => {
    const { deliver } = deliverWith(
      { slack: { api_url: slack.url, token_env: 'BOT' } },
      { env: { BOT: 'xoxb-1' }, homeFolder },
    )
    const reply = makeReply(text, { updateKey: '/slack mention', ...more })
    const [result] = await deliver(resolveTargets([target]), reply)
    assert.equal(result?.state, 'done', result?.detail)
    return result.detail
  }
  const texts = () => [...slack.messages.values()]
  const long = (parts: number, word: string) =>
    Array.from({ length: parts * 1500 }, (_, line) => `${word} ${line}`).join('\n')

  it('edits the message of its thread, also after a restart, and that of no other rule or thread', async () => {
    await answer('one')
    await answer('two')
    assert.deepEqual(texts(), ['two'])
    const { body } = await slack.untilCalled('chat.update')
    assert.deepEqual(body, {
      channel: 'C0123ABCD',
      ts: '1795000000.000001',
      markdown_text: 'two',
    })
    await answer('of another rule', thread, { updateKey: '/slack other' })
    await answer('of another thread', 'slack:C0123ABCD/1700000000.000200')
    await answer('without update', thread, { updateKey: undefined })
    await answer('three')
    assert.deepEqual(texts(), ['three', 'of another rule', 'of another thread', 'without update'])
  })

  it('edits in a channel the message about the same subject, at the id that Slack gave the channel', async () => {
    await answer('first of 1', 'slack:#reviews', about('acme/shop#1'))
    await answer('first of 2', 'slack:#reviews', about('acme/shop#2'))
    await answer('second of 1', 'slack:#reviews', about('acme/shop#1'))
    await answer('direct', 'slack:@U0ADA', about('acme/shop#1'))
    await answer('direct again', 'slack:@U0ADA', about('acme/shop#1'))
    assert.deepEqual(texts(), ['second of 1', 'first of 2', 'direct again'])
    const channels = slack.calls
      .filter(({ method }) => method === 'chat.update')
      .map(({ body }) => body['channel'])
    assert.deepEqual(channels, ['C0CHANNEL', 'D0ADA'])
  })

  it('grows and shrinks with the answer', async () => {
    await answer(long(3, 'a'))
    const had = texts().length
    assert.ok(had >= 3)
    await answer('short')
    assert.deepEqual(texts(), ['short'])
    await answer(long(3, 'b'))
    assert.equal(texts().length, had)
    assert.ok(texts().every((text) => /\bb \d/.test(text)))
  })

  it('says that a part could not be removed', async () => {
    await answer(long(2, 'a'))
    slack.refusals.set('chat.delete', 'cant_delete_message')
    assert.equal(await answer('short'), 'a part of the earlier answer could not be removed')
  })

  it('posts a new message where the earlier one was deleted, without the parts that are left of it', async () => {
    await answer(long(2, 'a'))
    const [first = ''] = slack.messages.keys()
    slack.messages.delete(first)
    await answer('new')
    assert.deepEqual(texts(), ['new'])
    await answer('newer')
    assert.deepEqual(texts(), ['newer'])
  })

  it('posts a new message where the earlier one may not be edited, and leaves that whole', async () => {
    for (const error of ['edit_window_closed', 'cant_update_message', 'channel_not_found']) {
      slack.messages.clear()
      slack.refusals.clear()
      await answer(`old ${error}`, thread, { updateKey: error })
      slack.refusals.set('chat.update', error)
      await answer('new', thread, { updateKey: error })
      assert.deepEqual(texts(), [`old ${error}`, 'new'])
    }
  })

  it('keeps hashes and ids alone, in a file of its owner', async () => {
    await answer('canary-text', 'slack:#canary-channel', about('canary-subject'))
    const file = join(homeFolder, 'slack-messages')
    assert.match(await readFile(file, 'utf8'), /^[\w-]{43} \d{13} C0CHANNEL\/1795000000\.000001\n$/)
    assert.equal((await stat(file)).mode & 0o777, 0o600)
  })
})
