import assert from 'node:assert/strict'
import type { AgentReply } from '../../../../daemon/delivery/sender.ts'
import { createCommentMarks } from '../../../../daemon/delivery/loop-guard.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import {
  type GitlabServer,
  headOfMerge,
  startGitlabServer,
} from '../../../support/servers/gitlab-server.ts'
import { json } from '../../../support/servers/target-server.ts'

const target = 'gitlab-review:acme/tools/door!7'
const answer = (...comments: readonly object[]) =>
  `Looks good.\n\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``
const suggest = (code: string) => `\`\`\`suggestion\n${code}\n\`\`\``

describe('a review on GitLab', () => {
  let server: GitlabServer
  const links: unknown[] = []
  beforeEach(async () => {
    server = await startGitlabServer()
    const diff = '@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three'
    server.files.push({ new_path: 'src/b.ts', old_path: 'src/a.ts', diff })
    for (const numbers of ['1 1', '2 -', '- 2', '3 3'])
      server.lines.add(`src/a.ts src/b.ts ${numbers}`)
  })
  afterEach(() => server.close())

  const run = async (text: string, more: Partial<AgentReply> = {}) => {
    const test = deliverWith(
      { gitlab: { api_url: server.apiUrl } },
      { tokens: { gitlab: ['glo_first'] } },
    )
    links.length = 0
    const made = (link: unknown) => void links.push(link)
    const reply = makeReply(text, more)
    const [result] = await test.deliver(resolveTargets([target]), reply, { made })
    return result
  }
  const at = (line: number, more: object = {}) => ({ path: 'src/b.ts', line, body: 'x', ...more })
  /** The oldest first. */
  const notes = () =>
    server.notes
      .toReversed()
      .map(({ body, position }) => [
        position?.['old_line'],
        position?.['new_line'],
        body.replace(/^<!-- doorward:[^>]*-->\n<!-- doorward-key:[^>]*-->\n/, ''),
      ])

  it('has a thread for each comment on a line, and a note with the rest', async () => {
    const result = await run(
      answer(at(2), at(2, { side: 'LEFT' }), at(3), at(9), at(1, { path: 'c' })),
    )
    assert.deepEqual(
      [result?.state, result?.detail],
      ['done', '2 of 5 comments do not fit the diff: they are in the text of the review'],
    )
    const url = server.apiUrl.replace('/api/v4', '/acme/tools/door/-/merge_requests/7#note_1')
    assert.deepEqual(links, [{ target, what: 'review, 3 comments', url }])
    assert.deepEqual(notes(), [
      [undefined, 2, 'x'],
      [2, undefined, 'x'],
      [3, 3, 'x'],
      [undefined, undefined, 'Looks good.\n\n`src/b.ts`, line 9:\n\nx\n\n`c`, line 1:\n\nx'],
    ])
    const marks = createCommentMarks('an api token')
    for (const { body } of server.notes)
      assert.equal(marks.isOwnComment({ object_attributes: { note: body } }), true)
  })

  it('suggests for the lines above, and shows plain code where it would change the code', async () => {
    await run(
      answer(
        at(2, { body: suggest('@one // !1') }),
        at(3, { start_line: 1, body: suggest('@one') }),
        at(2, { side: 'LEFT', body: suggest('one') }),
      ),
    )
    assert.deepEqual(
      notes()
        .slice(0, 3)
        .map(([, , body]) => body),
      [
        '```\n@one // !\u200b1\n```',
        'Lines 1 to 3:\n\n```suggestion:-2+0\n@one\n```',
        '```\none\n```',
      ],
    )
  })

  it('puts into its note what GitLab refuses, and all of an older state', async () => {
    server.lines.clear()
    assert.match((await run(answer(at(2))))?.detail ?? '', /^1 of 1 comments do not fit/)
    const older = await run(answer(at(2)), { code: { head: 'd'.repeat(40) } })
    assert.match(older?.detail ?? '', /are on an older state of the merge request/)
    for (const [, line, body] of notes())
      assert.deepEqual([line, body], [undefined, 'Looks good.\n\n`src/b.ts`, line 2:\n\nx'])
  })

  it('says what the agent did not see, and takes large diffs from the workspace', async () => {
    const [file] = server.files
    assert.ok(file)
    const hunks = { 'src/b.ts': file.diff }
    file.diff = ''
    const code = { head: headOfMerge, hunks, leftOut: ['the diff leaves out 1 of 2 files'] }
    assert.equal((await run(answer(at(2)), { code }))?.detail, undefined)
    assert.match(String(notes()[1]?.[2]), /^_The agent did not see everything: the diff leaves out/)
    assert.equal(notes()[0]?.[1], 2)
  })

  it('posts nothing twice when it fails in the middle', async () => {
    server.next(
      json(200, {
        diff_refs: { base_sha: 'a'.repeat(40), start_sha: 'b'.repeat(40), head_sha: headOfMerge },
      }),
      json(200, server.files),
      json(200, []),
      json(200, []),
      (response, recorded, request) => {
        server.notes.unshift({
          body: String(recorded.fields['body']),
          id: 1,
          author: { id: 42 },
          resolvable: true,
          resolved: false,
          created_at: new Date().toISOString(),
        })
        return json(201, {})(response, recorded, request)
      },
      json(429, {}, { 'retry-after': '0' }),
    )
    const result = await run(answer(at(2), at(3)))
    assert.deepEqual([result?.state, result?.attempts, server.notes.length], ['done', 2, 3])
  })

  it('posts nothing for an answer without words, and no note where all is on lines', async () => {
    assert.match((await run('```json\n{"comments": []}\n```'))?.detail ?? '', /nothing was posted/)
    assert.equal(server.requests.length, 0)
    await run(JSON.stringify([at(2)]))
    assert.equal(notes().length, 1)
  })
})
