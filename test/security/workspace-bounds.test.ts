import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { chmod, mkdir, rm, truncate, writeFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import { dirname, join } from 'node:path'
import type { Invoke } from '../../daemon/agents/invoke.ts'
import type { RunProcess } from '../../daemon/agents/orphans.ts'
import { runProcess } from '../../daemon/agents/process.ts'
import { Sessions } from '../../daemon/sessions/sessions.ts'
import type { AcceptedEvent } from '../../daemon/webhook/events/accepted-event.ts'
import { createAsk } from '../../daemon/webhook/events/ask.ts'
import { createGit } from '../../daemon/workspace/git.ts'
import { Workspaces } from '../../daemon/workspace/workspaces.ts'
import { gatewayFileSchema } from '../../shared/config/schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type GitServer, startGitServer } from '../support/servers/git-server.ts'
import { temporaryFolder } from '../support/temporary.ts'

const { signal } = new AbortController()

/** Patterns of which one takes git longer than anyone waits, for a file in as many folders. */
const endless = `${'**/a/'.repeat(20)}x`
const deep = `${'a/'.repeat(40)}b`

const put = async (folder: string, files: Readonly<Record<string, string | number>>) => {
  for (const [path, content] of Object.entries(files)) {
    const place = join(folder, path)
    await mkdir(dirname(place), { recursive: true })
    await writeFile(place, typeof content === 'string' ? content : '')
    if (typeof content === 'number') await truncate(place, content)
  }
}

const linesOf = (count: number, line = 'pattern'): string =>
  Array.from({ length: count }, (_, place) => `${line}-${place}\n`).join('')

describe('git in a workspace', () => {
  let server: GitServer
  let argv: string[][]
  beforeEach(async () => (server = await startGitServer(undefined)))
  afterEach(() => server.close())

  const requestFor = () => ({
    repo: server.folder,
    fixed: 'all' as const,
    ref: 'main',
    base: undefined,
    pull: undefined,
    login: undefined,
    access: 'write' as const,
    depth: undefined,
  })

  const preparer = async (limit = 'exec "$@"') => {
    argv = []
    const run: RunProcess = async (options) => {
      argv.push([...options.argv])
      return runProcess({ ...options, argv: ['sh', '-c', limit, 'sh', ...options.argv] })
    }
    const workspaces = new Workspaces({
      home: { workspaces: await temporaryFolder(), run: await temporaryFolder() },
      run,
      access: async () => assert.fail('a path needs no login'),
      delaysMs: [],
    })
    return workspaces.preparer(gatewayFileSchema.parse({}), process.env)
  }

  /** Without a git that reads the files: it would not end. */
  const pushUnread = async (files: Readonly<Record<string, string>>) => {
    const file = join(await temporaryFolder(), 'file')
    for (const [path, content] of Object.entries(files)) {
      await writeFile(file, content)
      const hash = await server.git('hash-object', '-w', '--no-filters', file)
      await server.git('update-index', '--add', '--cacheinfo', `100644,${hash},${path}`)
    }
    const tree = await server.git('write-tree')
    const commit = await server.git('commit-tree', tree, '-p', 'HEAD', '-m', 'endless')
    await server.git('push', '--quiet', 'origin', `${commit}:refs/heads/main`)
  }

  const failsWith = (code: string, words: RegExp) => (error: unknown) => {
    assert.ok(error instanceof DoorwardError, String(error))
    const text = `${error.message} ${error.localDetail ?? ''} ${error.hint ?? ''}`
    assert.equal(error.code, code, text)
    assert.match(text, words)
    return true
  }

  it('has patterns that are counted before git reads them', async () => {
    const attacks: readonly Readonly<Record<string, string | number>>[] = [
      { '.gitignore': linesOf(300_000) },
      { '.gitignore': 3 * 1024 ** 3 },
      { '.GITIGNORE': 3 * 1024 ** 3 },
      { 'a/b/.gitattributes': 3 * 1024 ** 3 },
      { 'a/.gitignore': linesOf(6000), 'a/b/.gitattributes': linesOf(6000) },
    ]
    const workspace = await (await preparer())(requestFor(), 'evt_1', signal)
    const checkedOut = argv.length
    for (const files of attacks) {
      await put(workspace.path, files)
      await assert.rejects(
        workspace.commit('changes'),
        failsWith('workspace-failed', /\.git(ignore|attributes) has too many patterns/i),
      )
      for (const path of Object.keys(files)) await rm(join(workspace.path, path))
    }
    assert.equal(argv.length, checkedOut)
    await workspace.release()
  })

  it('reads the patterns of honest projects, and not any number of changes', async () => {
    const workspace = await (await preparer())(requestFor(), 'evt_1', signal)
    const folders = Array.from({ length: 40 }, (_, place) => `packages/${place}/.gitignore`)
    await put(workspace.path, {
      '.gitignore': `${linesOf(2000, '*.ignored')}build/\n`,
      'build/out.js': 'x',
      'packages/1/x.ignored-7': 'x',
      'kept.txt': 'x',
      ...Object.fromEntries(folders.map((path) => [path, linesOf(1000)])),
    })
    const { ref } = await workspace.commit('changes')
    const { stdout } = await workspace.git(['ls-tree', '-r', '--name-only', ref ?? ''])
    const committed = String(stdout).trim().split('\n')
    assert.deepEqual(
      new Set(committed),
      new Set(['.gitignore', 'hello.txt', 'kept.txt', ...folders]),
    )
    for (let name = 0; name <= 10_000; name += 1)
      writeFileSync(join(workspace.path, `${name}.txt`), '')
    await assert.rejects(
      workspace.commit('changes'),
      failsWith('workspace-failed', /the agent changed more than 10000 files/),
    )
    await workspace.release()
  })

  it('has a limit of memory in every process of git', async function () {
    // Other systems have no such limit.
    if (process.platform !== 'linux') this.skip()
    const folder = await temporaryFolder()
    const program = '#!/bin/sh\n[ "$1" = version ] && echo git version 2.40.0 || ulimit -d\n'
    await writeFile(join(folder, 'git'), program)
    await chmod(join(folder, 'git'), 0o755)
    const git = createGit(runProcess, { PATH: folder }, folder)
    const kilobytes = Number((await git(['status'], { cwd: folder, signal })).stdout)
    assert.ok(
      kilobytes > 0 && kilobytes <= Math.min(4 * 1024 ** 2, totalmem() / 2048),
      `${kilobytes}`,
    )

    await server.push({ 'lines.txt': '\n'.repeat(10 * 1024 ** 2) })
    const prepare = await preparer('ulimit -d 100000; exec "$@"')
    const workspace = await prepare(requestFor(), 'evt_1', signal)
    await assert.rejects(
      workspace.git([
        'diff',
        '--numstat',
        'HEAD~1'.replace('HEAD', workspace.head),
        workspace.head,
      ]),
      failsWith('workspace-failed', /git needs more memory than it may have/),
    )
    await workspace.release()
  })

  const askWith = (
    prepareWorkspace: Awaited<ReturnType<typeof preparer>>,
    timeout: number,
    invoke: Invoke,
  ) =>
    createAsk({
      prepareWorkspace,
      askGithub: async () => assert.fail('no context'),
      requireRole: async () => undefined,
      sessions: new Sessions({ follow: () => () => undefined }),
      listChange: async () => assert.fail('no paths'),
      invoke,
      marks: undefined,
    })({
      id: 'evt_1',
      event: {
        webhook: { path: '/x', agentName: 'fixer', agent: { kind: 'echo', timeout } },
        known: {},
        prompt: 'fix it',
        targets: [{ kind: 'pull-request' }],
        workspace: requestFor(),
      } as unknown as AcceptedEvent,
      signal,
      had: () => undefined,
    })

  it('is one clock with its agent, from the checkout to the commit', async () => {
    const prepare = await preparer()
    const timeouts: number[] = []
    const agent =
      (files: Readonly<Record<string, string>>): Invoke =>
      async (_, { timeout }, { workspace }) => {
        timeouts.push(timeout)
        await put(workspace?.path ?? '', files)
        return { text: 'answer', cut: false }
      }
    const { answer, seen } = await askWith(prepare, 60_000, agent({ 'new.txt': 'x' }))
    assert.equal(answer.text, 'answer')
    assert.notEqual(seen?.change, 'none')
    assert.ok((timeouts[0] ?? 0) < 60_000)

    await assert.rejects(
      askWith(prepare, 3000, agent({ '.gitignore': endless, [deep]: '' })),
      failsWith('agent-timeout', /timeout of 3 s .* agent \d.* s, commit \d.* s.*raise/),
    )
    await pushUnread({ '.gitattributes': `${endless} text`, [deep]: '' })
    await assert.rejects(
      askWith(prepare, 1000, async () => assert.fail('it was checked out')),
      failsWith('agent-timeout', /timeout of 1 s is for the whole run: checkout \d.* s/),
    )
    assert.equal(timeouts.length, 2)
  })
})
