import assert from 'node:assert/strict'
import type { z } from 'zod'
import { toActionText } from '../../../../daemon/delivery/outputs/action.ts'
import { readAnswer } from '../../../../daemon/delivery/outputs/read-answer.ts'
import type { ResolvedTarget } from '../../../../daemon/delivery/sender.ts'
import { parseAnswer } from '../../../../daemon/delivery/format/review.ts'
import { outputsSchema } from '../../../../shared/targets/outputs.ts'

const all: z.input<typeof outputsSchema> = {
  labels: { allowed: ['bug', 'Docs', 'area/*'] },
  comment: {},
  issue: { title_prefix: '[door] ', labels: ['triage'] },
  close: {},
  assign: { allowed: ['ada', 'Grace'] },
}

const targetOf = (address: string, sender = 'github'): ResolvedTarget => ({
  kind: sender === 'github' ? 'github-outputs' : 'gitlab-outputs',
  text: `outputs:${address}`,
  address,
})

const read = (
  answer: string,
  outputs: z.input<typeof outputsSchema> = all,
  target = targetOf('acme/door#3'),
) => readAnswer(answer, outputsSchema.parse(outputs), [target])
const block = (value: unknown, fence = '```json') => `${fence}\n${JSON.stringify(value)}\n\`\`\``
const whysOf = ({ dropped }: ReturnType<typeof readAnswer>) =>
  dropped.map(({ kind, why }) => `${kind}: ${why}`)

describe('the requests of an answer', () => {
  it('are one fenced block, which is taken out of the text', () => {
    const answer = `Two faults.\n\n${block({
      labels: ['bug', 'area/api'],
      comment: 'Hello @all',
      issue: { title: 'More\nlines', body: 'See #1' },
      close: ['#12'],
      assign: '@ada',
    })}\n\nThat is all.`
    const { text, actions, dropped } = read(answer)
    assert.equal(text, 'Two faults.\n\n\n\nThat is all.')
    assert.deepEqual(dropped, [])
    assert.deepEqual(actions, [
      { kind: 'labels', labels: ['bug', 'area/api'] },
      { kind: 'assign', assign: ['ada'] },
      { kind: 'comment', body: 'Hello @all' },
      { kind: 'issue', title: '[door] More lines', body: 'See #1', labels: ['triage'] },
      { kind: 'close', number: 12, own: true },
    ])
  })

  it('are the same as a whole answer without a fence', () => {
    const { text, actions } = read(`\r\n{\r\n  "labels": ["bug"],\r\n  "comment": "Hi"\r\n}\n`)
    assert.equal(text, '')
    assert.deepEqual(
      actions.map(({ kind }) => kind),
      ['labels', 'comment'],
    )
  })

  it('are none in a text: without a fence inside words, inside another fence, or as a quote', () => {
    for (const answer of [
      'Fine.\n\n{"labels": ["bug"]}',
      '{"labels": ["bug"]}\n\nFine.',
      `\`\`\`\`md\n${block({ labels: ['bug'] })}\n\`\`\`\``,
      `> ${block({ labels: ['bug'] }).replaceAll('\n', '\n> ')}`,
      block({ name: 'labels' }),
      block([{ labels: ['bug'] }]),
      block({ answer: { labels: ['bug'] } }),
      'labels: bug',
      '',
    ])
      assert.deepEqual(read(answer), { text: answer, reviewText: answer, actions: [], dropped: [] })
  })

  it('are none for a rule without outputs', () => {
    const answer = block({ labels: ['bug'] })
    const target = targetOf('acme/door#3')
    assert.equal(readAnswer(answer, undefined, [target]).text, answer)
    assert.equal(readAnswer(answer, outputsSchema.parse(all), []).actions.length, 0)
  })

  it('are dropped with the reason where the rule does not have or allow them', () => {
    const found = read(
      block({ labels: ['bug', 'wontfix', 'area/x/y'], assign: ['mallory'], close: [1], merge: 7 }),
      { labels: all.labels, assign: all.assign },
    )
    assert.deepEqual(found.actions, [{ kind: 'labels', labels: ['bug'] }])
    assert.deepEqual(whysOf(found), [
      'other: no such request: merge',
      'labels: not in allowed: wontfix, area/x/y',
      'assign: not in allowed: mallory',
      'close: outputs of the rule does not have it',
    ])
  })

  it('are counted after those that are not allowed and repeats, 10,000 of them too', () => {
    const many = Array.from({ length: 10_000 }, (_, place) => `x${place}`)
    const found = read(block({ labels: [...many, 'BUG', 'bug', 'docs', 'area/a', 'area/b'] }))
    assert.deepEqual(found.actions, [{ kind: 'labels', labels: ['bug', 'Docs', 'area/a'] }])
    assert.deepEqual(whysOf(found), [
      'labels: not in allowed: x0, x1, x2, x3, x4 and 9995 more',
      'labels: 1 over max: 3',
    ])
    const two = read(block({ comment: ['a', 'b'], issue: [{ title: 'a' }, { title: 'b' }] }))
    assert.deepEqual(
      two.actions.map((action) => [action.kind, 'body' in action && action.body]),
      [
        ['comment', 'a'],
        ['issue', ''],
      ],
    )
    assert.deepEqual(whysOf(two), ['comment: 1 over max: 1', 'issue: 1 over max: 1'])
  })

  it('have the case rules of their server', () => {
    const target = targetOf('acme/door!3', 'gitlab')
    const found = read(block({ labels: ['BUG', 'Docs'], assign: ['ADA'] }), all, target)
    assert.deepEqual(found.actions, [
      { kind: 'labels', labels: ['Docs'] },
      { kind: 'assign', assign: ['ada'] },
    ])
    assert.deepEqual(whysOf(found), ['labels: not in allowed: BUG'])
  })

  for (const [what, requests, whys] of [
    ['labels', [1, null, {}, '', 'x'.repeat(5000)], 'a name is a text of at most 255 characters'],
    ['assign', { ada: true }, 'a name is a text of at most 255 characters'],
    ['comment', [' \n', 7, {}], 'a comment is a text that is not empty'],
    ['issue', 'a title', 'an issue is an object with a title and a body, both of them texts'],
    ['issue', { title: '' }, 'an issue is an object with a title and a body, both of them texts'],
    [
      'issue',
      { title: 'a', body: 1 },
      'an issue is an object with a title and a body, both of them texts',
    ],
    ['close', ['x', -1, 1.5, 0, '1e3', true, 2 ** 60], 'an issue is named by its number'],
  ] as const)
    it(`are dropped where ${what} is ${JSON.stringify(requests).slice(0, 40)}`, () => {
      const found = read(block({ [what]: requests }))
      assert.deepEqual(found.actions, [])
      assert.deepEqual(whysOf(found), [`${what}: ${whys}`])
    })

  it('take no address and no label from an issue', () => {
    const found = read(
      `\`\`\`json\n{"issue": {"title": "T", "body": "B", "repository": "evil/repo", "labels": ["x"], "__proto__": {"a": 1}}}\n\`\`\``,
    )
    assert.deepEqual(found.actions, [
      { kind: 'issue', title: '[door] T', body: 'B', labels: ['triage'] },
    ])
    assert.deepEqual(whysOf(found), [
      'issue: an issue has only title and body: repository, labels, __proto__',
    ])
  })

  it('have titles of one line, with the prefix once, within the limit', () => {
    const titleOf = (title: string) => {
      const [action] = read(block({ issue: { title } })).actions
      return action?.kind === 'issue' ? action.title : undefined
    }
    assert.equal(titleOf('[door] again'), '[door] again')
    assert.equal(titleOf('# A\u0007 \u202eb\r\nc'), '[door] A b c')
    const long = titleOf('long '.repeat(200)) ?? ''
    assert.ok(long.length <= 255 && long.endsWith('…'))
  })

  it('are all dropped where there are two blocks, as one may be a quote', () => {
    const found = read(`${block({ labels: ['bug'] })}\n\nand\n\n${block({ comment: 'x' })}`)
    assert.deepEqual([found.text, found.actions], ['and', []])
    const why = 'the answer has more than one block of requests'
    assert.deepEqual(whysOf(found), [`labels: ${why}`, `comment: ${why}`])
  })

  it('are dropped where the block is cut, and the text stays', () => {
    const whole = block({ labels: ['bug'], comment: 'Hello' })
    for (const answer of [`Fine.\n\n${whole.slice(0, 40)}`, whole.slice(8, 30)]) {
      const found = read(answer)
      assert.deepEqual([found.text, found.actions], [answer, []])
      assert.ok(whysOf(found).every((why) => why.endsWith('its block is no whole JSON')))
      assert.ok(found.dropped.length > 0)
    }
  })

  it('have the last of two equal keys, counted and checked like any other', () => {
    const found = read('```json\n{"labels": ["bug"], "labels": ["wontfix", "docs"]}\n```')
    assert.deepEqual(found.actions, [{ kind: 'labels', labels: ['Docs'] }])
  })

  it('leave the block of a review and of a check to those', () => {
    const comments = [{ path: 'a.ts', line: 2, side: 'RIGHT', body: 'Why?' }]
    const one = read(`Good.\n\n${block({ labels: ['bug'], comments, conclusion: 'failure' })}`)
    assert.equal(one.text, 'Good.')
    assert.deepEqual(parseAnswer(one.reviewText), {
      text: 'Good.',
      comments,
      conclusion: 'failure',
    })
    const apart = read(`Good.\n\n${block({ comments })}\n\n${block({ labels: ['bug'] })}`)
    assert.equal(apart.actions.length, 1)
    assert.deepEqual(parseAnswer(apart.reviewText), { text: 'Good.', comments })
    const only = read(block({ comments }))
    assert.equal(only.reviewText, block({ comments }))
  })

  it('about an issue are dropped where the event is about none', () => {
    const found = read(
      block({ labels: ['bug'], comment: 'x', issue: { title: 't' } }),
      all,
      targetOf('acme/door'),
    )
    assert.deepEqual(
      found.actions.map(({ kind }) => kind),
      ['issue'],
    )
    const why = 'the event is about no issue, pull request or merge request'
    assert.deepEqual(whysOf(found), [`labels: ${why}`, `comment: ${why}`])
  })

  it('are harmless at GitLab, where a line can be a command', () => {
    const found = read(
      block({ comment: '/merge\n@all', issue: { title: 't', body: '/close' } }),
      all,
      targetOf('acme/door#3', 'gitlab'),
    )
    const bodies = found.actions.map((action) => toActionText(action, 'gitlab-outputs', {}))
    assert.ok(
      bodies.every((body) => !/("|\\n)\/\w|@all/.test(body)),
      bodies.join(),
    )
  })
})
