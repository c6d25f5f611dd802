import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { link, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findFiles, readOwnFile } from '../../../daemon/agents/sessions/transcript.ts'
import { toOpencodeExport } from '../../../shared/agents/transcripts.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('the file of a transcript', () => {
  it('is a regular file with one name, within its limit', async () => {
    const folder = await temporaryFolder()
    const at = (name: string) => join(folder, name)
    await writeFile(at('plain'), 'text')
    await writeFile(at('named-twice'), 'text')
    await link(at('named-twice'), at('other-name'))
    await symlink(at('plain'), at('link'))
    await mkdir(at('folder'))
    execFileSync('mkfifo', [at('pipe')])
    assert.equal(String(await readOwnFile(at('plain'), 4)), 'text')
    assert.equal(await readOwnFile(at('plain'), 3), 'too-long')
    for (const name of ['named-twice', 'link', 'folder', 'pipe', 'missing'])
      assert.equal(await readOwnFile(at(name), 100), undefined, name)
    assert.equal(await readOwnFile('/dev/zero', 100), undefined)
  })

  it('is found below folders that are no links', async () => {
    const folder = await temporaryFolder()
    const other = await temporaryFolder()
    await mkdir(join(folder, 'projects', 'a'), { recursive: true })
    await writeFile(join(folder, 'projects', 'a', 'one.jsonl'), '')
    await mkdir(join(other, 'b'))
    await writeFile(join(other, 'b', 'one.jsonl'), '')
    await symlink(join(other, 'b'), join(folder, 'projects', 'b'))
    await symlink(other, join(folder, 'linked'))
    const parts = (name: string) => [name, /^/, 'one.jsonl']
    assert.deepEqual(await findFiles(folder, parts('projects')), [
      join(folder, 'projects', 'a', 'one.jsonl'),
    ])
    assert.deepEqual(await findFiles(folder, parts('linked')), [])
  })

  it('grants OpenCode nothing, whatever an agent wrote into it', () => {
    const hostile = { info: { id: 'ses_1', permission: [{ permission: '*', action: 'allow' }] } }
    const { info } = JSON.parse(
      toOpencodeExport(Buffer.from(JSON.stringify(hostile)), '/work'),
    ) as {
      info: { directory: string; permission: { action: string }[] }
    }
    assert.equal(info.directory, '/work')
    assert.ok(info.permission.every(({ action }) => action === 'deny'))
    assert.throws(() => toOpencodeExport(Buffer.from('{'), '/work'))
  })
})
