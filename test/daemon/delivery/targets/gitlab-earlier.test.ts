import assert from 'node:assert/strict'
import type { AgentReply } from '../../../../daemon/delivery/sender.ts'
import { deliverWith, makeReply, resolveTargets } from '../../../support/servers/deliver.ts'
import { type GitlabServer, startGitlabServer } from '../../../support/servers/gitlab-server.ts'
import { json } from '../../../support/servers/target-server.ts'

const answer = (text: string, ...comments: readonly object[]) =>
  `${text}\n\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``
const at = (line: number, body: string) => ({ path: 'src/b.ts', line, body })
const shown = (body = '') => body.replaceAll(/<!-- doorward[^>]*-->\s*/g, '')

describe('a review on GitLab after an earlier one of its rule', () => {
  let server: GitlabServer
  let events: number
  beforeEach(async () => {
    events = 0
    server = await startGitlabServer()
    const diff = '@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three'
    server.files.push({ new_path: 'src/b.ts', old_path: 'src/a.ts', diff })
    for (const numbers of ['1 1', '2 -', '- 2', '3 3', '- 1', '- 3'])
      server.lines.add(`src/a.ts src/b.ts ${numbers}`)
  })
  afterEach(() => server.close())

  const run = async (text: string, more: Partial<AgentReply> = {}) => {
    const { deliver } = deliverWith(
      { gitlab: { api_url: server.apiUrl } },
      { tokens: { gitlab: ['glo_first'] } },
    )
    events += 1
    const eventId = `evt_${String(events).padStart(18, '0')}`
    const reply = makeReply(text, { eventId, rule: 'review', ...more })
    const [result] = await deliver(resolveTargets(['gitlab-review:acme/tools/door!7']), reply)
    assert.equal(result?.state, 'done', result?.detail)
    return result
  }
  /** The oldest first. */
  const texts = () => server.notes.toReversed().map(({ body }) => shown(body))
  const noteOf = (text: string) => {
    const note = server.notes.find(({ body }) => shown(body) === text)
    assert.ok(note)
    return note
  }
  const link = (id: number) =>
    `[A newer review](${server.apiUrl.replace('/api/v4', '')}/acme/tools/door/-/merge_requests/7#note_${id}) replaces this one.`

  it('repeats no comment that is there, also on another number of its line', async () => {
    await run(answer('One.', at(2, 'Why?')))
    const [file] = server.files
    assert.ok(file)
    file.diff = '@@ -1,3 +1,4 @@\n+zero\n one\n-two\n+TWO\n three'
    const result = await run(answer('Two.', at(3, 'Why?'), at(1, 'New.')))
    assert.equal(result.detail, 'a comment was there already')
    const words = 'Two.\n\n_A comment of an earlier review still applies, and is not repeated._'
    assert.deepEqual(texts(), ['Why?', link(4), 'New.', words])
  })

  it('has words to link to, where it has none of its own', async () => {
    await run('One.')
    await run(answer('', at(2, 'Why?')))
    assert.deepEqual(texts(), [link(3), 'Why?', 'Comments on lines:'])
  })

  it('resolves threads on lines that are gone, unless the answer says the same again', async () => {
    await run(answer('One.', at(2, 'Gone.'), at(3, 'Here.'), at(1, 'Again.')))
    await run(answer('', at(2, 'Of another rule.')), { rule: 'other' })
    for (const text of ['Gone.', 'Again.', 'Of another rule.']) {
      const note = noteOf(text)
      note.position = { ...note.position, head_sha: 'e'.repeat(40) }
    }
    assert.equal((await run(answer('Two.', at(1, 'Again.')))).detail, 'a comment was there already')
    assert.deepEqual(
      ['Gone.', 'Here.', 'Again.', 'Of another rule.'].map((text) => noteOf(text).resolved),
      [true, false, false, false],
    )
  })

  it('touches nothing that another account has copied', async () => {
    await run(answer('One.', at(2, 'Why?')))
    for (const note of server.notes) note.author = { id: 7 }
    await run(answer('Two.', at(2, 'Why?')))
    assert.deepEqual(texts(), ['Why?', 'One.', 'Why?', 'Two.'])
  })

  for (const status of [403, 404, 422])
    it(`is posted once where GitLab answers ${status} to what follows`, async () => {
      await run(answer('One.', at(2, 'Gone.')))
      const gone = noteOf('Gone.')
      gone.position = { ...gone.position, head_sha: 'e'.repeat(40) }
      const notes = server.notes.map((note) => ({ id: 'f', notes: [note] }))
      server.next(
        json(200, notes),
        json(200, { id: 42 }),
        json(201, { id: 3 }),
        json(status, {}),
        json(200, { diff_refs: { head_sha: 'c'.repeat(40) } }),
        json(status, {}),
      )
      const { detail, attempts } = await run('Two.')
      assert.match(
        detail ?? '',
        new RegExp(
          `^an earlier review keeps its words: gitlab answered ${status}.*; threads on lines that are gone stay open: gitlab answered ${status}`,
        ),
      )
      assert.equal(attempts, 1)
    })
})
