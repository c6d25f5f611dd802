import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { packageFolder } from '../../../shared/version.ts'
import { run } from '../support/cli.ts'

describe('doorward setup', () => {
  it('prints the page for an agent program as it is, which documents.test.ts tries', async () => {
    const page = await readFile(new URL('docs/setup-for-agents.md', packageFolder), 'utf8')
    const printed = await run(['setup', '--for-agent'])
    assert.deepEqual([printed.code, printed.stdout], [0, page])
    const json = await run(['setup', '--for-agent', '--json'])
    assert.deepEqual(JSON.parse(json.stdout), { text: page })
  })

  it('asks for no secret in the conversation, and says what a person does alone', async () => {
    const { stdout } = await run(['setup', '--for-agent'])
    assert.match(stdout, /One question|one question/)
    assert.match(stdout, /Never ask for a secret/)
  })

  it('says what there is for a person', async () => {
    const alone = await run(['setup'])
    assert.equal(alone.code, 2)
    assert.match(alone.stderr, /--for-agent/)
  })
})
