import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runProcess } from '../../daemon/agents/process.ts'
import { Workspaces } from '../../daemon/workspace/workspaces.ts'
import { gatewayFileSchema } from '../../shared/config/schema.ts'
import type { Note } from '../report/sample.ts'

/*
 * The code for one run: a repository of 10,000 files on this machine, first without a mirror, then with one
 * and a commit that is new. `bare` is `git worktree add` of the same commit.
 */

/** Of the repository that `importFiles` makes. */
const fileCount = 10_000

export const workspaceRow = 'workspace of 10,000 files'

const signal = new AbortController().signal

export const measureWorkspaces = async (folder: string, note: Note): Promise<void> => {
  const own = mkdtempSync(join(folder, 'workspace-'))
  const source = join(own, 'source.git')
  const git = (...args: string[]) => execFileSync('git', ['--git-dir', source, ...args])
  mkdirSync(source)
  git('init', '--quiet', '--bare')
  try {
    importFiles(source, 1)
    const workspaces = new Workspaces({
      home: { workspaces: join(own, 'workspaces'), run: own },
      run: runProcess,
      access: async () => Promise.reject(new Error('a path needs no login')),
    })
    const prepare = workspaces.preparer(gatewayFileSchema.parse({}), process.env)
    const time = async (measure: string) => {
      const start = performance.now()
      const { release } = await prepare(request(source), 'evt_bench', signal)
      note({ row: workspaceRow, measure, column: 'doorward', value: performance.now() - start })
      const released = performance.now()
      await release()
      const ms = performance.now() - released
      note({ row: workspaceRow, measure: 'removed ms', column: 'doorward', value: ms })
    }
    await time('first ms')
    importFiles(source, 2)
    await time('next ms')
    const start = performance.now()
    git('worktree', 'add', '--quiet', '--detach', join(own, 'bare'), 'main')
    note({
      row: workspaceRow,
      measure: 'next ms',
      column: 'bare',
      value: performance.now() - start,
    })
  } finally {
    rmSync(own, { recursive: true, force: true })
  }
}

const request = (repo: string) => ({
  repo,
  fixed: 'all' as const,
  ref: 'main',
  base: undefined,
  pull: undefined,
  login: undefined,
  access: 'read' as const,
  depth: undefined,
})

/** One commit by git-fast-import(1): the first with all files of 2 KB, the next changes 100. */
export const importFiles = (source: string, commit: number): void => {
  const lines = [
    'commit refs/heads/main',
    'committer Ada <ada@example.com> 1 +0000',
    'data 3',
    'one',
  ]
  if (commit > 1) lines.push('from refs/heads/main^0')
  for (let index = 0; index < (commit > 1 ? 100 : fileCount); index += 1) {
    const text = `line ${index} of commit ${commit}\n`.repeat(80)
    const path = `src/part-${index % 100}/file-${index}.ts`
    lines.push(`M 100644 inline ${path}`, `data ${text.length}`, text)
  }
  execFileSync('git', ['--git-dir', source, 'fast-import', '--quiet'], {
    input: `${lines.join('\n')}\n`,
  })
}
