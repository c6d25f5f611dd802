import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { steeringFiles, steersAgent } from '../../../daemon/workspace/steering.ts'
import { packageFolder } from '../../../shared/version.ts'

/** A path of that form: `.env.*` as `.env.x`, `.claude/` as `.claude/x`. */
const sampleOf = (file: string): string => file.replace(/\/$/, '/x').replaceAll('*', 'x')

describe('files that steer an agent', () => {
  it('are found in every folder and in any case, each with a source', () => {
    for (const { source, files } of steeringFiles) {
      assert.ok(URL.canParse(source), source)
      for (const file of files)
        for (const path of [sampleOf(file), `a/b/${sampleOf(file)}`, sampleOf(file).toUpperCase()])
          assert.ok(steersAgent(path), path)
    }
  })

  it('are not those with names that are alike', () => {
    for (const path of [
      'docs/agents.md.txt',
      'src/my-claude.md',
      '.github/workflows/review.yml',
      '.github/CODEOWNERS',
      '.vscode/settings.json',
      'environment/.envy',
      'config/npmrc',
      'firestore.rules',
      'mise/build.toml',
      'github/agents/x.md',
    ])
      assert.ok(!steersAgent(path), path)
  })

  it('are those of the document', async () => {
    const page = await readFile(new URL('docs/workspaces.md', packageFolder), 'utf8')
    const rows = [...page.matchAll(/^\| (.+?) +\| (`.+?`) +\| \[source\]\((.+)\) +\|$/gm)]
    const documented = rows.map(([, program, files = '', source]) => ({
      program,
      source,
      files: files.split(', ').map((file) => file.replaceAll('`', '')),
    }))
    assert.deepEqual(documented, steeringFiles)
  })
})
