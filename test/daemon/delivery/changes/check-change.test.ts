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

/** As git quotes a path. */
const quoted = (path: string): string =>
  `"${path.replaceAll('\\', '\\\\').replaceAll('\u001b', String.raw`\033`)}"`

type Entry = readonly [path: string, text: string, mode?: string]

describe('what an agent changed', () => {
  let gitDir = ''
  const ref = 'refs/doorward/changes/one'
  const run = (args: readonly string[], input = ''): unknown =>
    execFileSync('git', args, { cwd: gitDir, input, env: gitEnvironment('/dev/null') })

  before(async () => {
    gitDir = await temporaryFolder()
    run(['init', '--quiet', '--bare', '.'])
    run(['config', 'remote.origin.url', url])
  })

  /** A commit on the ref for git-fast-import(1), of any tree: also one that no worktree can have. */
  const commit = (entries: readonly Entry[]): string => {
    const data = (text: string) => `data ${Buffer.byteLength(text)}\n${text}\n`
    const files = entries.map(([path, text, mode = '100644']) =>
      mode === submodule
        ? `M ${mode} ${text} ${quoted(path)}\n`
        : `M ${mode} inline ${quoted(path)}\n${data(text)}`,
    )
    const head = `commit ${ref}\ncommitter Ada <ada@example.com> 0 +0000\n${data('change')}`
    return `${head}deleteall\n${files.join('')}`
  }
  const check = async (
    after: readonly Entry[],
    before: readonly Entry[] = [],
    allow?: string[],
  ) => {
    run(['fast-import', '--quiet', '--force'], `reset ${ref}\n\n${commit(before)}${commit(after)}`)
    const change = { gitDir, ref, url }
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
