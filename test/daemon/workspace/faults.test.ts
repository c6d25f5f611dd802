import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runProcess } from '../../../daemon/agents/process.ts'
import type { WorkspaceRequest } from '../../../daemon/workspace/request.ts'
import { Workspaces } from '../../../daemon/workspace/workspaces.ts'
import { gatewayFileSchema } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const gateway = gatewayFileSchema.parse({})

const request = ({ folder }: GitServer): WorkspaceRequest => ({
  repo: folder,
  fixed: 'all',
  ref: 'main',
  base: undefined,
  pull: undefined,
  login: undefined,
  access: 'read',
  depth: undefined,
})

const workspacesIn = (folder: string): Workspaces =>
  new Workspaces({
    home: { workspaces: folder, run: folder },
    run: runProcess,
    access: async () => assert.fail('a path needs no login'),
    delaysMs: [],
  })

const failsWith = (code: string, words: RegExp) => (error: unknown) => {
  assert.ok(error instanceof DoorwardError, String(error))
  assert.equal(error.code, code, error.localDetail)
  assert.match(`${error.message} ${error.hint ?? ''}`, words, error.localDetail)
  return true
}

describe('a workspace that cannot be made', () => {
  let server: GitServer
  const never = new AbortController().signal
  before(async () => (server = await startGitServer(undefined)))
  after(() => server.close())

  it('names git where it is missing or old', async () => {
    const folder = await temporaryFolder()
    const workspaces = workspacesIn(join(folder, 'workspaces'))
    const without = workspaces.preparer(gateway, { PATH: folder })
    await assert.rejects(
      without(request(server), 'evt_1', never),
      failsWith('workspace-git-missing', /no git on the daemon's PATH.*2\.32 or newer/),
    )
    await writeFile(join(folder, 'git'), '#!/bin/sh\necho git version 2.25.1\n')
    await chmod(join(folder, 'git'), 0o755)
    const old = workspaces.preparer(gateway, { PATH: `${folder}:${process.env['PATH']}` })
    await assert.rejects(
      old(request(server), 'evt_1', never),
      failsWith('workspace-git-missing', /git 2\.25 is too old.*2\.32/),
    )
    assert.deepEqual(await readdir(join(folder, 'workspaces')), [])
  })

  it('leaves nothing on a full disk, and works when there is room again', async () => {
    const big = await startGitServer(undefined)
    await big.push({ 'big.bin': randomBytes(900_000).toString('base64') })
    const folder = await temporaryFolder()
    const workspaces = workspacesIn(folder)
    // A disk of our own, which only its mount namespace sees, is one where git loses its way: a limit of file
    // sizes plays it.
    const limit = `trap '' XFSZ; ulimit -f 400; exec "$@"`
    const full = new Workspaces({
      home: { workspaces: folder, run: folder },
      run: async (options) =>
        runProcess({ ...options, argv: ['sh', '-c', limit, 'sh', ...options.argv] }),
      access: async () => assert.fail('a path needs no login'),
      delaysMs: [],
    })
    // Once an hour: its cleanup would not know the runs of the other.
    await full.trim(gateway)
    try {
      await assert.rejects(
        full.preparer(gateway, process.env)(request(big), 'evt_1', never),
        failsWith('workspace-failed', /the disk is full.*doorward workspace clear/),
      )
      const [mirror = ''] = await readdir(folder)
      assert.deepEqual(await readdir(join(folder, mirror, 'runs')), [])
      const { release } = await workspaces.preparer(gateway, process.env)(
        request(big),
        'evt_1',
        never,
      )
      await assert.rejects(
        full.preparer(gateway, process.env)(request(big), 'evt_2', never),
        failsWith('workspace-failed', /the disk may be full/),
      )
      await release()
      assert.deepEqual(await readdir(join(folder, mirror, 'runs')), [])
    } finally {
      big.close()
    }
  })

  it('needs no more room than it may, however often a tree names one large file', async () => {
    const server = await startGitServer(undefined)
    const zeros = '0'.repeat(1024 * 1024)
    await server.push(
      Object.fromEntries(Array.from({ length: 60 }, (_, name) => [`${name}`, zeros])),
    )
    const folder = await temporaryFolder()
    const small = gatewayFileSchema.parse({ workspaces: { max_size: '20mb' } })
    try {
      await assert.rejects(
        workspacesIn(folder).preparer(small, process.env)(request(server), 'evt_1', never),
        failsWith('workspace-failed', /need too much room.*workspaces\.max_size/),
      )
      const [mirror = ''] = await readdir(folder)
      assert.deepEqual(await readdir(join(folder, mirror, 'runs')), [])
    } finally {
      server.close()
    }
  })

  it('ends with the event that is cancelled', async () => {
    const workspaces = workspacesIn(await temporaryFolder())
    const control = new AbortController()
    control.abort()
    await assert.rejects(
      workspaces.preparer(gateway, process.env)(request(server), 'evt_1', control.signal),
      failsWith('agent-stopped', /stops/),
    )
  })
})

describe('what is kept of workspaces', () => {
  let server: GitServer
  const { signal } = new AbortController()
  beforeEach(async () => (server = await startGitServer(undefined)))
  afterEach(() => server.close())

  it('goes when it was not used for long, and the oldest above the limit', async () => {
    const folder = await temporaryFolder()
    const { store } = workspacesIn(folder)
    for (const [name, days] of [
      ['new-1', 1],
      ['old-2', 40],
      ['mid-3', 10],
    ] as const) {
      const mirror = join(folder, name, 'mirror.git')
      await mkdir(mirror, { recursive: true })
      await writeFile(join(folder, name, 'address'), name)
      await writeFile(join(mirror, 'pack'), 'x'.repeat(1000))
      const used = new Date(Date.now() - days * 86_400_000)
      await utimes(mirror, used, used)
    }
    const names = async () => (await store.list()).map(({ name }) => name)
    assert.deepEqual(await names(), ['new-1', 'mid-3', 'old-2'])
    await store.trim({ maxBytes: 10_000, keepMs: 30 * 86_400_000 })
    assert.deepEqual(await names(), ['new-1', 'mid-3'])
    await store.trim({ maxBytes: 1500, keepMs: 30 * 86_400_000 })
    assert.deepEqual(await names(), ['new-1'])
  })

  it('is not what a git that was killed has left', async () => {
    const folder = await temporaryFolder()
    const workspaces = workspacesIn(folder)
    const prepare = workspaces.preparer(gateway, process.env)
    await (await prepare(request(server), 'evt_1', signal)).release()
    const [name = ''] = await readdir(folder)
    const mirror = join(folder, name, 'mirror.git')
    await writeFile(join(mirror, 'packed-refs.lock'), '')
    const [seen = ''] = await readdir(join(mirror, 'refs', 'doorward', 'seen'))
    await writeFile(join(mirror, 'refs', 'doorward', 'seen', `${seen}.lock`), '')
    await writeFile(join(mirror, 'objects', 'pack', 'tmp_pack_x'), 'part')
    await mkdir(join(folder, name, 'mirror.git.new'))
    await workspaces.store.trim({ maxBytes: 2 ** 30, keepMs: 86_400_000 })
    assert.ok(!existsSync(join(mirror, 'packed-refs.lock')))
    assert.ok(!existsSync(join(mirror, 'objects', 'pack', 'tmp_pack_x')))
    await (await prepare(request(server), 'evt_2', signal)).release()
  })

  it('goes with folders that an agent made read-only, or too deep for a path', async () => {
    const folder = await temporaryFolder()
    const workspace = await workspacesIn(folder).preparer(gateway, process.env)(
      request(server),
      'evt_1',
      signal,
    )
    const closed = join(workspace.path, 'closed')
    await mkdir(closed)
    await writeFile(join(closed, 'file'), '')
    await chmod(closed, 0o500)
    const dig = `for (let depth = 0; depth < 30; depth += 1) {
      require('node:fs').mkdirSync('d'.repeat(200))
      process.chdir('d'.repeat(200))
    }`
    await promisify(execFile)(process.execPath, ['-e', dig], { cwd: workspace.path })
    await workspace.release()
    assert.ok(!existsSync(workspace.path))
  })
})
