import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { findComment, findMentionMiss } from '../../../../daemon/webhook/mentions/comment.ts'

const missOf = (scheme: string, payload: object) => findMentionMiss('doorward', scheme, payload)
const isNoComment = 'it is no comment or message, and has mention'
const isNotNamed = 'it does not name @doorward'
const wasNamed = 'it named @doorward before it was edited, and was asked once'

describe('a comment or message that names somebody', () => {
  it('is a comment, a review or a comment of a review at GitHub', () => {
    const issue = { number: 7 }
    const pull_request = { number: 7 }
    const comment = { id: 5, body: 'so: @Doorward why?' }
    const kinds = [
      { action: 'created', issue, comment },
      { action: 'created', pull_request, comment },
      { action: 'submitted', pull_request, review: { id: 5, body: '@doorward why?' } },
    ]
    for (const payload of kinds) assert.equal(missOf('github', payload), undefined)
    const ids = kinds.map((payload) => findComment('github', payload)?.id)
    assert.deepEqual(ids, ['issue comment 5', 'comment 5', 'review 5'])
    const other = { id: 5, body: 'thanks @doorward-bot' }
    assert.equal(missOf('github', { action: 'created', issue, comment: other }), isNotNamed)
    for (const payload of [
      { action: 'deleted', issue, comment },
      { action: 'opened', issue: { ...issue, body: '@doorward' } },
      { action: 'created', comment },
      { action: 'submitted', pull_request, review: { id: 5, body: null } },
      { action: 'edited', pull_request: { ...pull_request, body: '@doorward' } },
      { action: 'created', issue, comment: { body: '@doorward' } },
    ])
      assert.equal(missOf('github', payload), isNoComment, JSON.stringify(payload))
  })

  it('counts where it names somebody since it was edited', () => {
    const edited = (body: string, from?: string) =>
      missOf('github', {
        action: 'edited',
        issue: { number: 7 },
        comment: { id: 5, body },
        ...(from !== undefined && { changes: { body: { from } } }),
      })
    assert.equal(edited('@doorward why?', 'why?'), undefined)
    assert.equal(edited('@doorward why?', '`@doorward` why?'), undefined)
    assert.equal(edited('@doorward why?', '@doorward wy?'), wasNamed)
    assert.equal(edited('@doorward why?'), wasNamed)
  })

  it('is a note of a merge request or issue at GitLab', () => {
    const note = (more: object = {}) => ({
      object_kind: 'note',
      object_attributes: { id: 3, note: '@doorward why?', noteable_type: 'Issue', ...more },
    })
    assert.equal(missOf('gitlab', note()), undefined)
    assert.equal(findComment('gitlab', note())?.id, 'note 3')
    assert.equal(missOf('gitlab', note({ noteable_type: 'MergeRequest' })), undefined)
    assert.equal(missOf('gitlab', note({ note: '>>>\n@doorward\n>>>' })), isNotNamed)
    assert.equal(missOf('gitlab', note({ noteable_type: 'Snippet' })), isNoComment)
    assert.equal(missOf('gitlab', note({ system: true })), isNoComment)
    assert.equal(missOf('gitlab', { object_kind: 'issue', object_attributes: {} }), isNoComment)
  })

  it('is a message of Slack with the user of the app, or its name', () => {
    const authorizations = [{ user_id: 'U0DOORWARD', is_bot: true }]
    const slack = (text: string, more: object = {}, rest: object = { authorizations }) =>
      missOf('slack', {
        event: { type: 'message', channel: 'C1', ts: '1.2', text, ...more },
        ...rest,
      })
    for (const text of [
      '<@U0DOORWARD> why?',
      'hey <@U0DOORWARD|doorward>',
      'hey @Doorward why?',
      '&gt; quoted\n<@U0DOORWARD> why?',
      '`code` <@U0DOORWARD>',
    ])
      assert.equal(slack(text), undefined, text)
    for (const text of [
      'why?',
      '<@U0OTHER> why?',
      '&gt; <@U0DOORWARD> why?',
      'a\n&gt;&gt;&gt; b\n<@U0DOORWARD>',
      '`<@U0DOORWARD>`',
      '```\n<@U0DOORWARD>\n```',
      '```\n<@U0DOORWARD>',
      '<https://example.com/@doorward|@doorward>',
      '<mailto:a@doorward.com|a@doorward>',
      '@doorward-bot why?',
    ])
      assert.equal(slack(text), isNotNamed, text)
    // Without authorizations only the kind of the event says whom it names.
    assert.equal(slack('<@U0ANY> why?', { type: 'app_mention' }, {}), undefined)
    assert.equal(slack('`<@U0ANY>` why?', { type: 'app_mention' }, {}), isNotNamed)
    assert.equal(slack('<@U0ANY> why?', {}, {}), isNotNamed)
    assert.equal(slack('<@U0DOORWARD>', { type: 'reaction_added' }), isNoComment)
    assert.equal(slack('<@U0DOORWARD>', { subtype: 'message_deleted' }), isNoComment)
  })

  it('is a message of Slack that names it since it was edited', () => {
    const edited = (text: string, before: string) => ({
      event: {
        type: 'message',
        subtype: 'message_changed',
        channel: 'C1',
        ts: '9.9',
        message: { ts: '1.2', text },
        previous_message: { ts: '1.2', text: before },
      },
      authorizations: [{ user_id: 'U0DOORWARD' }],
    })
    assert.equal(missOf('slack', edited('<@U0DOORWARD> why?', 'why?')), undefined)
    assert.equal(
      missOf('slack', edited('<@U0DOORWARD> why?', '<@U0DOORWARD> wy?')),
      'it named @doorward before it was edited, and was asked once',
    )
    assert.equal(findComment('slack', edited('a', 'b'))?.id, 'message C1 1.2')
  })

  it('is a message of Telegram, whose entities say what is code', () => {
    const entity = (type: string, text: string, part: string, more: object = {}) => ({
      type,
      offset: text.indexOf(part),
      length: part.length,
      ...more,
    })
    const telegram = (message: object) =>
      missOf('telegram', { message: { chat: { id: -1 }, message_id: 4, ...message } })
    const text = '🙂 @Doorward why?'
    const name = '@Doorward'
    assert.equal(telegram({ text, entities: [entity('mention', text, name)] }), undefined)
    assert.equal(telegram({ text }), undefined)
    assert.equal(telegram({ text: '/ask@doorward why?' }), undefined)
    assert.equal(
      telegram({ caption: text, caption_entities: [entity('mention', text, name)] }),
      undefined,
    )
    const words = 'Door, why?'
    const user = (username: string) => ({ user: { id: 1, username } })
    assert.equal(
      telegram({
        text: words,
        entities: [entity('text_mention', words, 'Door', user('Doorward'))],
      }),
      undefined,
    )
    assert.equal(
      telegram({ text: words, entities: [entity('text_mention', words, 'Door', user('other'))] }),
      isNotNamed,
    )
    for (const type of ['code', 'pre', 'blockquote', 'expandable_blockquote', 'url', 'email'])
      assert.equal(telegram({ text, entities: [entity(type, text, name)] }), isNotNamed, type)
    assert.equal(telegram({ text: 'ask @doorward_bot' }), isNotNamed)
    assert.equal(missOf('telegram', { poll: {} }), isNoComment)
    const edited = { edited_message: { chat: { id: -1 }, message_id: 4, text } }
    assert.equal(missOf('telegram', edited), undefined)
    assert.equal(findComment('telegram', edited)?.id, 'message -1 4')
  })
})
