import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { runProcess } from '../../../../daemon/agents/process.ts'
import { checkChange } from '../../../../daemon/delivery/changes/check-change.ts'
import { createGit } from '../../../../daemon/workspace/git.ts'
import { gitEnvironment } from '../../../support/servers/git-server.ts'
import { temporaryFolder } from '../../../support/temporary.ts'

const git = createGit(runProcess, process.env, '/nowhere')
const { signal } = new AbortController()
const url = 'https://github.com/acme/door.git'
const link = '120000'
const submodule = '160000'

type Entry = readonly [path: string, text: string, mode?: string]

describe('what an agent changed', () => {
  let gitDir = ''
  const run = (args: readonly string[], input = ''): string =>
    execFileSync('git', args, {
      cwd: gitDir,
      input,
      encoding: 'utf8',
      env: {
        ...gitEnvironment('/dev/null'),
        GIT_AUTHOR_NAME: 'Ada',
        GIT_AUTHOR_EMAIL: 'ada@example.com',
        GIT_COMMITTER_NAME: 'Ada',
        GIT_COMMITTER_EMAIL: 'ada@example.com',
      },
    }).trim()

  before(async () => {
    gitDir = await temporaryFolder()
    run(['init', '--quiet', '--bare', '.'])
    run(['config', 'remote.origin.url', url])
  })

  /** Any tree, also one that no worktree can have. */
  const commit = (entries: readonly Entry[], parent?: string): string => {
    run(['read-tree', '--empty'])
    for (const [path, text, mode = '100644'] of entries) {
      const hash = mode === submodule ? text : run(['hash-object', '-w', '--stdin'], text)
      run(['update-index', '--add', '--cacheinfo', `${mode},${hash},${path}`])
    }
    const of = parent === undefined ? [] : ['-p', parent]
    return run(['commit-tree', run(['write-tree']), ...of], 'change')
  }
  const check = async (
    after: readonly Entry[],
    before: readonly Entry[] = [],
    allow?: string[],
  ) => {
    const changed = commit(after, commit(before))
    run(['update-ref', 'refs/doorward/changes/one', changed])
    const change = { gitDir, ref: 'refs/doorward/changes/one', url }
    const reply = { eventId: 'evt_1', publish: allow && { allowFiles: allow } }
    return checkChange(git, change, reply, { signal }).then(
      ({ hasWorkflows }) => (hasWorkflows ? 'with workflows' : 'allowed'),
      (error: unknown) => (error as Error).message,
    )
  }

  for (const path of [
    '.github/workflows/ci.yml',
    '.github/actions/build/action.yml',
    '.github/dependabot.yml',
    '.github/CODEOWNERS',
    'CODEOWNERS',
    'docs/codeowners',
    '.GitHub/Workflows/CI.yml',
    '.github',
    '.gitlab-ci.yml',
    '.circleci/config.yml',
    '.husky/pre-commit',
    'packages/web/.husky/pre-push',
    '.githooks/post-checkout',
    'lefthook.yml',
    '.lefthook-local.yml',
    '.pre-commit-config.yaml',
    '.gitlab/CODEOWNERS',
    '.gitlab/ci/build.yml',
    '.forgejo/workflows/ci.yaml',
    'Jenkinsfile',
    '.travis.yml',
    'atlantis.yaml',
    '.mergify.yml',
    'renovate.json',
    '.devcontainer/devcontainer.json',
    '.vscode/tasks.json',
    'web/.envrc',
  ])
    it(`may not be ${path}, unless its rule names it`, async () => {
      assert.ok((await check([[path, 'x']])).includes(`allow: ${path} (`))
      // To remove it says as much as to write it.
      assert.ok((await check([], [[path, 'x']])).includes(`allow: ${path} (`))
      assert.match(await check([[path, 'x']], [], [path]), /^(allowed|with workflows)$/)
    })

  it('may be other files, Markdown of GitHub, and what only looks like one of them', async () => {
    assert.equal(
      await check([
        ['.github/PULL_REQUEST_TEMPLATE.md', 'x'],
        ['.github/actions/build/README.md', 'x'],
        ['src/CODEOWNERS', 'x'],
        ['docs/.gitlab-ci.yml', 'x'],
        ['src/husky/index.ts', 'x'],
        ['not.github/x', 'x'],
      ]),
      'allowed',
    )
  })

  it('may not be a submodule, new, changed or removed', async () => {
    const one: Entry = ['lib', 'a'.repeat(40), submodule]
    const other: Entry = ['lib', 'b'.repeat(40), submodule]
    for (const refused of [check([one]), check([other], [one]), check([], [one])])
      assert.match(await refused, /lib \(is a submodule\)/)
    assert.match(await check([['.gitmodules', 'x']]), /says where submodules come from/)
  })

  it('may not be a link out of the repository, by any way', async () => {
    for (const target of [
      '/etc/passwd',
      '../../outside',
      '../..',
      'x/../../../outside',
      'd/../e',
      'C:\\Windows',
      '\\\\server\\share',
      '..\\..\\outside',
      '../.git/hooks',
      '../.GIT/config',
      '',
    ])
      assert.match(
        await check([['a/link', target, link]]),
        /a\/link \(is a link out of the repository\)/,
        target,
      )
    for (const target of ['other', '../other/file', '..', 'd/e'])
      assert.equal(await check([['a/link', target, link]]), 'allowed', target)
  })

  it('is refused with the names of five files, safe to show', async () => {
    const many = Array.from({ length: 7 }, (_, place): Entry => [`.husky/\u001b[31m${place}`, 'x'])
    const message = await check(many)
    assert.match(message, /: \.husky\/0 .*, \.husky\/4 \([^)]*\), and 2 more$/)
    assert.ok(!message.includes('\u001b'))
  })

  it('says whether workflows are among it, which not every token may push', async () => {
    const file: Entry = ['.github/workflows/ci.yml', 'x']
    assert.equal(await check([file], [], ['.github/workflows/**']), 'with workflows')
  })
})
