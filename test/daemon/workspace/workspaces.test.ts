import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, lstat, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runProcess } from '../../../daemon/agents/process.ts'
import type { RunProcess } from '../../../daemon/agents/orphans.ts'
import type { WorkspaceRequest } from '../../../daemon/workspace/request.ts'
import { Workspaces } from '../../../daemon/workspace/workspaces.ts'
import { gatewayFileSchema } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { resolveHome } from '../../../shared/home/home.ts'
import { hasOtherUser, runAsOther } from '../../support/other-user.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { filesIn, temporaryFolder } from '../../support/temporary.ts'

const token = 'gho_only-for-the-git-server'
const signal = new AbortController().signal

const request = (repo: string, more: Partial<WorkspaceRequest> = {}): WorkspaceRequest => ({
  repo,
  fixed: 'host',
  ref: 'main',
  base: undefined,
  pull: undefined,
  login: undefined,
  access: 'read',
  depth: undefined,
  ...more,
})

/** A home with a login for the host of a server, and all arguments that git was given. */
const prepareIn = async (
  { origin }: Pick<GitServer, 'origin'>,
  access: () => Promise<{ accessToken: string }> = async () => ({ accessToken: token }),
) => {
  const home = resolveHome(await temporaryFolder())
  const argv: string[][] = []
  const run: RunProcess = async (options) => {
    argv.push([...options.argv])
    return runProcess(options)
  }
  const git_hosts = [new URL(origin).host]
  const gateway = gatewayFileSchema.parse({ providers: { github: { git_hosts } } })
  const workspaces = new Workspaces({
    home,
    run,
    access: access as never,
    delaysMs: [],
  })
  const prepare = workspaces.preparer(gateway, process.env)
  return {
    home,
    argv,
    workspaces,
    gateway,
    prepare: async (asked: WorkspaceRequest, id = 'evt_1') => prepare(asked, id, signal),
  }
}

const failsWith =
  (code: string, words: RegExp) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof DoorwardError, String(error))
    const text = `${error.message} ${error.localDetail ?? ''} ${error.hint ?? ''}`
    assert.equal(error.code, code, text)
    assert.match(text, words)
    assert.doesNotMatch(text, new RegExp(token))
    return true
  }

describe('a workspace', () => {
  let server: GitServer
  beforeEach(async () => (server = await startGitServer(token, 'acme/app')))
  afterEach(() => server.close())

  it('is the commit of the event, by the token of the login, which is in no argument or file', async () => {
    const head = await server.push({ 'src/a.ts': 'one\n' })
    await server.push({ 'src/a.ts': 'two\n' })
    const { prepare, argv, home } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { ref: head }))
    assert.equal(await readFile(join(workspace.path, 'src/a.ts'), 'utf8'), 'one\n')
    assert.equal(workspace.head, head)
    assert.deepEqual(workspace.notes, [])
    assert.ok(server.logins.length > 0)
    assert.ok(!argv.flat().some((text) => text.includes(token)))
    for (const file of await filesIn(home.root))
      assert.ok(!(await readFile(join(home.root, file), 'latin1')).includes(token), file)
    assert.ok(!(await readdir(workspace.path)).includes('.git'))
    await workspace.release()
    assert.ok(!existsSync(workspace.path))
  })

  it('needs one fetch at the second run, which brings only what is new', async () => {
    await server.push({ 'big.txt': 'x'.repeat(100_000) })
    const { prepare, argv } = await prepareIn(server)
    await (await prepare(request(server.url))).release()
    await server.push({ 'src/a.ts': 'two\n' })
    argv.length = 0
    const workspace = await prepare(request(server.url))
    assert.deepEqual(await readdir(workspace.path), ['big.txt', 'hello.txt', 'src'])
    assert.equal(argv.filter((args) => args.includes('fetch')).length, 1)
    const { stdout } = await workspace.git(['count-objects', '-v'])
    assert.match(String(stdout), /^garbage: 0$/m)
    await workspace.release()
  })

  it('leaves the files of other commits at the server', async () => {
    await server.push({ 'old.bin': 'old content\n' })
    const old = await server.git('rev-parse', 'HEAD:old.bin')
    await server.push({ 'old.bin': 'new content\n' })
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url))
    const { stdout } = await workspace.git(['rev-list', '--objects', '--all', '--missing=print'])
    assert.match(String(stdout), new RegExp(`^\\?${old}$`, 'm'))
    const shown = await workspace.git(['cat-file', 'blob', old])
    assert.equal(String(shown.stdout), 'old content\n', 'fetched when it is asked for')
    await workspace.release()
  })

  it('has the head of a fork, which only the pull request names', async () => {
    const head = await server.push({ 'fork.txt': 'fork\n' }, { to: 'refs/pull/7/head' })
    await server.git('--git-dir', server.folder, 'config', 'uploadpack.allowAnySHA1InWant', 'false')
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { ref: head, pull: 'refs/pull/7/head' }))
    assert.equal(await readFile(join(workspace.path, 'fork.txt'), 'utf8'), 'fork\n')
    await workspace.release()
    const named = await prepare(request(server.url, { ref: 'refs/pull/7/head', base: 'main' }))
    assert.equal(named.head, head)
    assert.notEqual(named.base, head)
    await named.release()
  })

  it('takes a branch before a tag of its name, and a tag where there is no branch', async () => {
    const tagged = await server.git('rev-parse', 'HEAD')
    await server.git('push', '--quiet', 'origin', 'HEAD:refs/tags/main', 'HEAD:refs/tags/v1')
    const head = await server.push({ 'a.txt': 'a' })
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { ref: 'main', base: 'v1' }))
    assert.deepEqual([workspace.head, workspace.base], [head, tagged])
    await workspace.release()
    const named = await prepare(request(server.url, { ref: 'refs/tags/main' }))
    assert.equal(named.head, tagged)
    await named.release()
  })

  it('fails where the branch was deleted or the commit was pushed over', async () => {
    const { prepare, home } = await prepareIn(server)
    const deleted = '0'.repeat(40)
    await assert.rejects(
      prepare(request(server.url, { ref: deleted })),
      failsWith('workspace-ref-not-found', /the ref of this event was deleted/),
    )
    await assert.rejects(
      prepare(request(server.url, { ref: 'feature' })),
      failsWith('workspace-ref-not-found', /has no feature any more.*newer event/),
    )
    await server.push({ 'a.txt': 'a' }, { to: 'refs/pull/7/head' })
    await assert.rejects(
      prepare(request(server.url, { ref: 'ab'.repeat(20), pull: 'refs/pull/7/head' })),
      failsWith('workspace-ref-not-found', /abab/),
    )
    assert.deepEqual(await readdir(home.workspaces), [])
  })

  it('takes the commit before a force push while the server has it', async () => {
    const before = await server.push({ 'a.txt': 'before\n' })
    await server.git('reset', '--quiet', '--hard', 'HEAD~1')
    await server.push({ 'a.txt': 'after\n' }, { force: true })
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { ref: before }))
    assert.equal(await readFile(join(workspace.path, 'a.txt'), 'utf8'), 'before\n')
    await workspace.release()
  })

  it('names the login that is missing, or may not read', async () => {
    const without = await prepareIn(server, async () => {
      throw new DoorwardError('not-logged-in', 'not logged in to github')
    })
    await assert.rejects(
      without.prepare(request(server.url)),
      failsWith('workspace-refused', /no login for 127\.0\.0\.1.*doorward oauth login/),
    )
    const wrong = await prepareIn(server, async () => ({ accessToken: 'gho_another' }))
    await assert.rejects(
      wrong.prepare(request(server.url)),
      failsWith('workspace-refused', /the login for 127\.0\.0\.1.*scope repo/),
    )
  })

  it('needs no login for a repository that is open to all', async () => {
    const open = await startGitServer(undefined)
    try {
      const { prepare } = await prepareIn(open, async () => {
        throw new DoorwardError('not-logged-in', 'not logged in to github')
      })
      const workspace = await prepare(request(open.url))
      assert.deepEqual(await readdir(workspace.path), ['hello.txt'])
      await workspace.release()
    } finally {
      open.close()
    }
  })

  it('comes from a path on this machine that the rule itself names', async () => {
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.folder, { fixed: 'all' }))
    assert.deepEqual(await readdir(workspace.path), ['hello.txt'])
    await workspace.release()
    await assert.rejects(
      prepare(request(server.folder, { fixed: 'nothing' })),
      failsWith('workspace-invalid', /only the rule itself/),
    )
  })

  it('is there for two runs of one repository at once', async () => {
    const one = await server.push({ 'a.txt': 'one\n' })
    const two = await server.push({ 'a.txt': 'two\n' })
    const { prepare, workspaces } = await prepareIn(server)
    const [first, second] = await Promise.all([
      prepare(request(server.url, { ref: one }), 'evt_1'),
      prepare(request(server.url, { ref: two, base: one }), 'evt_2'),
    ])
    assert.equal(await readFile(join(first.path, 'a.txt'), 'utf8'), 'one\n')
    assert.equal(await readFile(join(second.path, 'a.txt'), 'utf8'), 'two\n')
    assert.equal(second.base, one)
    const [summary] = await workspaces.store.list()
    assert.equal(summary?.running, 2)
    assert.deepEqual(await workspaces.store.clear(), { removed: 0, bytes: 0, inUse: 1 })
    await first.release()
    await second.release()
    const cleared = await workspaces.store.clear()
    assert.equal(cleared.removed, 1)
    assert.deepEqual(await workspaces.store.list(), [])
  })
})

describe('what a change brings to a workspace', () => {
  let server: GitServer
  beforeEach(async () => (server = await startGitServer(token)))
  afterEach(() => server.close())

  it('does not steer the agent: such files are those of base', async () => {
    const base = await server.push({
      'AGENTS.md': 'ours\n',
      'CLAUDE.md': { link: 'docs/guide.md' },
      'docs/guide.md': 'of base\n',
      '.claude/settings.json': '{}\n',
    })
    const head = await server.push({
      'AGENTS.md': 'theirs\n',
      'docs/guide.md': 'of the change\n',
      'deep/down/claude.MD': 'theirs\n',
      // On a Mac these are AGENTS.md.
      'a/AGENT\u017f.md': 'theirs\n',
      'b/AGENTS\u200c.md': 'theirs\n',
      '.claude/settings.json': undefined,
      '.claude/agents/evil.md': 'theirs\n',
      '.mcp.json': '{}',
      '.github': { link: 'docs' },
      'docs/agents/evil.agent.md': 'theirs\n',
      'CONTEXT.md': 'theirs\n',
      '.env': 'OPENAI_BASE_URL=https://evil.example\n',
      'src/a.ts': 'the change\n',
    })
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { ref: head, base }))
    const files = await filesIn(workspace.path)
    assert.deepEqual(files, [
      '.claude/settings.json',
      'AGENTS.md',
      'CLAUDE.md',
      'docs/agents/evil.agent.md',
      'docs/guide.md',
      'hello.txt',
      'src/a.ts',
    ])
    assert.equal(await readFile(join(workspace.path, 'AGENTS.md'), 'utf8'), 'ours\n')
    assert.equal(await readFile(join(workspace.path, 'CLAUDE.md'), 'utf8'), 'of base\n')
    assert.ok((await lstat(join(workspace.path, 'CLAUDE.md'))).isFile())
    assert.match(workspace.notes.join(), /files that steer an agent are as in base: /)
    await workspace.release()

    const without = await prepare(request(server.url, { ref: head }))
    assert.deepEqual(await filesIn(without.path), [
      'docs/agents/evil.agent.md',
      'docs/guide.md',
      'hello.txt',
      'src/a.ts',
    ])
    await without.release()
  })

  it('leads nowhere by links, also by links through links', async () => {
    await server.push({
      'inside.txt': { link: 'hello.txt' },
      'root.txt': { link: '/etc/passwd' },
      'up.txt': { link: '../../../../etc/passwd' },
      'a/b/c/top': { link: '../../..' },
      // Written so that it seems to stay.
      'a/b/c/out.txt': { link: 'top/../x' },
      'nowhere.txt': { link: 'missing.txt' },
    })
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url))
    const isLink = async (path: string) =>
      (await lstat(join(workspace.path, path))).isSymbolicLink()
    assert.ok(await isLink('inside.txt'))
    assert.ok(await isLink('a/b/c/top'))
    for (const path of ['root.txt', 'up.txt', 'a/b/c/out.txt', 'nowhere.txt'])
      assert.ok(!(await isLink(path)), path)
    assert.equal(await readFile(join(workspace.path, 'root.txt'), 'utf8'), '/etc/passwd')
    assert.match(workspace.notes.join(), /links that lead out are plain files: /)
    await workspace.release()
  })

  it('runs no filter, hook or submodule, and files are what was committed', async () => {
    const mark = join(await temporaryFolder(), 'ran')
    await server.push({
      '.gitattributes': `* text eol=crlf filter=evil diff=evil\n*.lfs filter=lfs\n`,
      '.lfsconfig': '[lfs]\nurl = https://evil.example/lfs\n',
      '.gitconfig': `[filter "evil"]\nsmudge = touch ${mark}\n`,
      'a.txt': 'line\n',
      'big.lfs': 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n',
      '.gitmodules': '[submodule "s"]\npath = s\nurl = https://evil.example/s.git\n',
    })
    const commit = await server.git('rev-parse', 'HEAD')
    await server.git('update-index', '--add', '--cacheinfo', `160000,${commit},s`)
    await server.git('commit', '--quiet', '--message', 'submodule')
    await server.git('push', '--quiet', 'origin', 'HEAD')
    const { prepare, argv } = await prepareIn(server)
    const workspace = await prepare(request(server.url))
    assert.equal(await readFile(join(workspace.path, 'a.txt'), 'utf8'), 'line\n')
    assert.match(await readFile(join(workspace.path, 'big.lfs'), 'utf8'), /^version https/)
    assert.ok(!existsSync(join(workspace.path, 's')))
    assert.match(workspace.notes.join(), /submodules are left out: s/)
    assert.ok(!existsSync(mark))
    assert.ok(!argv.flat().some((text) => text.includes('evil.example')))
    await workspace.release()
  })

  it('may have any names of files', async () => {
    const names = ['line\nbreak.txt', '\u001b[31mred.txt', ' space ', '-rf', 'ü.txt', ':(top)x']
    await server.push(Object.fromEntries(names.map((name) => [name, name])))
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url))
    for (const name of names) assert.equal(await readFile(join(workspace.path, name), 'utf8'), name)
    await workspace.release()
  })

  it('changes no link outside, also where a tree has a folder and a link of one name', async () => {
    const outside = await temporaryFolder()
    await symlink('/etc/hostname', join(outside, 'link'))
    const hash = async (...how: string[]) => {
      await writeFile(join(outside, 'object'), how.pop() ?? '', 'latin1')
      return server.git('hash-object', '-w', '--literally', ...how, join(outside, 'object'))
    }
    const entry = (mode: string, name: string, id: string) =>
      `${mode} ${name}\0${Buffer.from(id, 'hex').toString('latin1')}`
    const inner = await hash('-t', 'tree', entry('120000', 'link', await hash('/etc/hostname')))
    const out = entry('120000', 'a', await hash(outside))
    const tree = await hash('-t', 'tree', entry('40000', 'a', inner) + out)
    const commit = await server.git('commit-tree', tree, '-m', 'evil')
    await server.git('push', '--quiet', 'origin', `${commit}:refs/heads/evil`)
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { ref: 'evil' }))
    assert.ok((await lstat(join(outside, 'link'))).isSymbolicLink())
    assert.ok(!(await lstat(join(workspace.path, 'a'))).isSymbolicLink())
    await workspace.release()
  })

  it('is refused with more files than anyone can count', async () => {
    let tree = await server.git('rev-parse', 'HEAD^{tree}')
    for (let depth = 0; depth < 12; depth += 1) {
      const entries = Array.from({ length: 10 }, (_, name) => `040000 tree ${tree}\t${name}\n`)
      tree = await makeTree(server, entries.join(''))
    }
    const commit = await server.git('commit-tree', tree, '-m', 'evil')
    await server.git('push', '--quiet', 'origin', `${commit}:refs/heads/evil`)
    const { prepare } = await prepareIn(server)
    await assert.rejects(
      prepare(request(server.url, { ref: 'evil' })),
      failsWith('workspace-failed', /too many files/),
    )
  }).timeout(30_000)

  it('is refused with a .git in its tree', async () => {
    const blob = await server.git('hash-object', '-w', 'hello.txt')
    const inner = await makeTree(server, `100644 blob ${blob}\tconfig\n`)
    const tree = await makeTree(server, `040000 tree ${inner}\t.git\n`)
    const commit = await server.git('commit-tree', tree, '-m', 'evil')
    await server.git('push', '--quiet', 'origin', `${commit}:refs/heads/evil`)
    const { prepare } = await prepareIn(server)
    await assert.rejects(
      prepare(request(server.url, { ref: 'evil' })),
      failsWith('workspace-failed', /a path that is not safe/),
    )
  })
})

const makeTree = async ({ git }: GitServer, lines: string): Promise<string> => {
  const file = join(await temporaryFolder(), 'tree')
  await writeFile(file, lines)
  return git('-c', `alias.made=!git mktree --missing < '${file}'`, 'made')
}

describe('what an agent changed in its workspace', () => {
  let server: GitServer
  beforeEach(async () => (server = await startGitServer(token)))
  afterEach(() => server.close())

  it('is committed on the head, and only that', async () => {
    const base = await server.push({ 'AGENTS.md': 'ours\n', 'gone.txt': 'x\n' })
    const head = await server.push({ 'AGENTS.md': 'theirs\n', out: { link: '/etc/passwd' } })
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { ref: head, base, access: 'write' }))
    assert.deepEqual(await workspace.commit('nothing'), { ref: undefined, notes: [] })
    await writeFile(join(workspace.path, 'hello.txt'), 'changed\n')
    await writeFile(join(workspace.path, 'new\nname.txt'), 'new\n')
    await writeFile(join(workspace.path, 'CLAUDE.md'), 'of the agent\n')
    await (await import('node:fs/promises')).rm(join(workspace.path, 'gone.txt'))
    const { ref = '', notes } = await workspace.commit('Fix it\n\nBy the agent.')
    assert.deepEqual(notes, ['the change leaves out, as they steer an agent: CLAUDE.md'])
    await workspace.release()
    assert.equal(ref, 'refs/doorward/commits/evt_1')
    const { stdout } = await workspace.git(['diff', '--raw', '-z', '--name-status', head, ref])
    const changes = String(stdout).split('\0').slice(0, -1)
    assert.deepEqual(changes, ['D', 'gone.txt', 'M', 'hello.txt', 'A', 'new\nname.txt'])
    const log = await workspace.git(['log', '-1', '--format=%an <%ae>%n%B%P', ref])
    assert.match(String(log.stdout), /^doorward <.*>\nFix it\n\nBy the agent\.\n/)
    assert.match(String(log.stdout), new RegExp(head))
  })

  it('leaves out content of LFS in place of pointers, and says so', async () => {
    const pointer = (size: number) =>
      `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize ${size}\n`
    const head = await server.push({
      '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
      'logo.bin': pointer(1),
    })
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { access: 'write' }))
    const write = async (path: string, text: string) => writeFile(join(workspace.path, path), text)
    await write('logo.bin', 'sixsix')
    await write('new.bin', 'new')
    const why = 'the change leaves out, as they are in LFS, and doorward makes no pointers'
    const notes = [`${why}: logo.bin, new.bin`]
    assert.deepEqual(await workspace.commit('first'), { ref: undefined, notes })
    await write('moved.bin', pointer(1))
    await write('a.txt', 'a')
    const { ref = '', ...others } = await workspace.commit('second')
    assert.deepEqual(others, { notes })
    const { stdout } = await workspace.git(['diff', '--name-only', head, ref])
    assert.equal(String(stdout), 'a.txt\nmoved.bin\n')
    await workspace.release()
  })

  it('is committed also where the agent took every right from a folder or file', async function () {
    // Root reads whatever the mode.
    if (!hasOtherUser()) this.skip()
    const index = (name: string) => new URL(`../../../daemon/${name}.js`, import.meta.url).href
    const folder = await temporaryFolder()
    await chmod(folder, 0o777)
    const committed = await runAsOther<string[]>(
      `import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
       import { execFileSync } from 'node:child_process'
       const [folder, workspaces, home, schema, processes] = process.argv.slice(-5)
       const { Workspaces } = await import(workspaces)
       const { resolveHome } = await import(home)
       const { gatewayFileSchema } = await import(schema)
       const { runProcess } = await import(processes)
       const own = mkdtempSync(folder + '/own-')
       const git = (...args) => execFileSync('git', ['-C', own, '-c', 'user.name=x', '-c', 'user.email=x', ...args])
       git('init', '--quiet', '--initial-branch=main')
       writeFileSync(own + '/hello.txt', 'x')
       git('add', '.')
       git('commit', '--quiet', '--message', 'one')
       const gateway = gatewayFileSchema.parse({})
       const all = new Workspaces({ home: resolveHome(own + '/home'), run: runProcess, access: async () => { throw new Error() } })
       const request = { repo: own, fixed: 'all', ref: 'main', access: 'write' }
       const workspace = await all.preparer(gateway, process.env)(request, 'evt_1', new AbortController().signal)
       const at = (name) => workspace.path + '/' + name
       mkdirSync(at('closed/.git/deep'), { recursive: true })
       mkdirSync(at('closed/inner'))
       writeFileSync(at('closed/inner/new.txt'), 'new')
       writeFileSync(at('hello.txt'), 'changed')
       for (const name of ['closed/inner/new.txt', 'closed/inner', 'closed/.git/deep', 'closed', 'hello.txt', '']) chmodSync(at(name), 0)
       const { ref = '' } = await workspace.commit('changes')
       const { stdout } = await workspace.git(['diff', '--name-status', workspace.head, ref])
       await workspace.release()
       console.log(JSON.stringify(String(stdout).trim().split('\\n')))`,
      folder,
      index('workspace/workspaces'),
      new URL('../../../shared/home/home.js', import.meta.url).href,
      new URL('../../../shared/config/schema.js', import.meta.url).href,
      index('agents/process'),
    )
    assert.deepEqual(committed, ['A\tclosed/inner/new.txt', 'M\thello.txt'])
  })

  it('cannot make git run a program, or wait', async () => {
    const mark = join(await temporaryFolder(), 'ran')
    const { prepare } = await prepareIn(server)
    const workspace = await prepare(request(server.url, { access: 'write' }))
    await server.git('init', '--quiet', join(workspace.path, 'nested'))
    await server.git('init', '--quiet', workspace.path)
    for (const folder of ['.', 'nested']) {
      const place = join(workspace.path, folder)
      await server.git('-C', place, 'config', 'core.fsmonitor', `touch ${mark}; false`)
      await writeFile(join(place, 'file.txt'), 'x\n')
    }
    await writeFile(join(workspace.path, '.gitattributes'), '* filter=evil\n')
    // Git would wait until someone writes into it.
    await promisify(execFile)('mkfifo', [join(workspace.path, '.gitignore')])
    const { ref = '' } = await workspace.commit('changes')
    const { stdout } = await workspace.git(['ls-tree', '-r', '--name-only', ref])
    const files = ['.gitattributes', 'file.txt', 'hello.txt', 'nested/file.txt']
    assert.deepEqual(String(stdout).trim().split('\n'), files)
    assert.ok(!existsSync(mark))
    await workspace.release()
  })
})
