import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { StartedLogin } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import { daemonProgram, daemonUnderLaunchd, packageFolder } from '../../../shared/version.ts'
import { cleanEnvironment } from '../../support/daemon/daemon.ts'
import { restart } from '../../support/daemon/restart.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'

const root = fileURLToPath(packageFolder)
const bin = join(root, 'dist', 'bin')

/** Loaded with the first configuration that needs them, not at a usual start. */
const lateParts = [
  './doorward-daemon-nats.cjs',
  './doorward-daemon-tunnel.cjs',
  './doorward-daemon-ws.cjs',
]

/** A line of the file that is in no function: `const a = require("…"), b = require("…");` */
const loadedAtStart =
  /^(?:const|let|var) (?:(?:, )?\w+ = require\("[^"]+"\))+;$|^require\("[^"]+"\);$/gm

const loadedIn = (text: string): string[] =>
  [...text.matchAll(/\brequire\("([^"]+)"\)/g)].map(([, id = '']) => id)

const partsOfDaemon = async (): Promise<string[]> =>
  (await readdir(bin)).filter((name) => /^doorward-daemon.*\.cjs$/.test(name))

/*
 * The daemon is few files that hold all it needs: it starts in half the time, and whoever updates the
 * package puts other files in the place of those of a daemon that runs.
 */
describe('flow: the program of the daemon', () => {
  it('loads nothing but Node and its own files, all of them at its start', async () => {
    const program = await readFile(join(bin, 'doorward-daemon.cjs'), 'utf8')
    for (const name of await partsOfDaemon()) {
      const text = await readFile(join(bin, name), 'utf8')
      const loaded = loadedIn(text)
      const others = loaded.filter(
        (id) => !/^(\.\/doorward-daemon|node:)/.test(id) && !builtinModules.includes(id),
      )
      assert.deepEqual(others, [], name)
      if (daemonUnderLaunchd.endsWith(name)) continue
      const early = new Set(
        [program, text].flatMap((part) => part.match(loadedAtStart) ?? []).flatMap(loadedIn),
      )
      const late = loaded.filter(
        (id) => id.startsWith('./') && !early.has(id) && !lateParts.includes(id),
      )
      assert.deepEqual(late, [], name)
      // One other character would double the memory that the text of the file takes.
      assert.match(text, /^[\u0000-\u007f]*$/, name)
    }
  })

  it('loads no file that loads it in turn, and would not be complete yet', async () => {
    const imports = new Map<string, string[]>()
    for (const name of await partsOfDaemon()) {
      const text = await readFile(join(bin, name), 'utf8')
      const loaded = [...text.matchAll(/\brequire\("\.\/([^"]+)"\)/g)].map(([, id = '']) => id)
      imports.set(name, loaded)
    }
    const visit = (name: string, path: readonly string[]): void => {
      assert.ok(!path.includes(name), [...path, name].join(' -> '))
      for (const next of imports.get(name) ?? []) visit(next, [...path, name])
    }
    for (const name of imports.keys()) visit(name, [])
  })

  it('runs as ES modules do, where a write to what cannot be written throws', async () => {
    for (const name of await readdir(bin)) {
      if (!name.endsWith('.cjs')) continue
      const text = await readFile(join(bin, name), 'utf8')
      assert.match(text, /^(#!.*\n)?"use strict";\n/, name)
    }
  })

  it('goes on when its files are deleted', async () => {
    const { folder, home, child, ended } = await startInstalled()
    await rm(join(folder, 'dist'), { recursive: true })
    const client = await connect(home)
    const metrics = await client.open('/metrics')
    assert.match(String(await metrics.toArray()), /^doorward_/m)
    const stream = await client.open('/events/stream')
    assert.match(String((await once(stream, 'data'))[0]), /^retry:/)
    stream.destroy()
    await assert.rejects(client.get('/oauth/tokens/github/access'), { code: 'not-logged-in' })
    client.close()
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })

  it('goes on when an installed newer version cannot take over', async () => {
    const { folder, home, child, ended } = await startInstalled()
    for (const name of ['assets', 'dist']) await rm(join(folder, name), { recursive: true })
    await mkdir(join(folder, 'dist', 'bin'), { recursive: true })
    await writeFile(join(folder, daemonProgram), exitsOnLead)
    const client = await connect(home)
    await assert.rejects(restart(client), {
      code: 'restart-failed',
      message: /the old one goes on: it exited with 3$/,
    })
    const login = await client.post<StartedLogin>('/oauth/start', {
      provider: 'github',
      clientId: 'a',
      clientSecret: 'b',
    })
    const page = await fetch(login.redirectUri)
    assert.match(await page.text(), /<style>/)
    const stream = await client.open('/events/stream', { headers: { 'last-event-id': '0-0' } })
    assert.match(String((await once(stream, 'data'))[0]), /^retry:/)
    stream.destroy()
    client.close()
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })

  it('lets an installed newer version check a configuration that it refuses itself', async () => {
    const { folder, home, child, ended } = await startInstalled()
    const client = await connect(home)
    await writeFile(join(home.config, 'agents.yaml'), 'agents: 5\n')
    await assert.rejects(restart(client), { code: 'config-invalid' })
    const file = join(folder, 'package.json')
    const installed = JSON.parse(await readFile(file, 'utf8')) as object
    await writeFile(file, JSON.stringify({ ...installed, version: '9.9.9' }))
    await writeFile(join(folder, daemonProgram), exitsOnLead)
    await assert.rejects(restart(client), {
      code: 'restart-failed',
      message: /the old one goes on: it exited with 3$/,
    })
    client.close()
    child.kill('SIGTERM')
    assert.deepEqual(await ended, [0, null])
  })

  it('still streams events when it cannot write daemon.json after a restart that failed', async () => {
    const { folder, home, child, ended } = await startInstalled()
    await writeFile(join(folder, daemonProgram), exitsOnServe)
    const client = await connect(home)
    await assert.rejects(restart(client), { message: /the old one goes on: it exited with 3$/ })
    const stream = await client.open('/events/stream')
    stream.setEncoding('utf8')
    await once(stream, 'data')
    const heard = (async () => {
      for await (const text of stream) if (/"kind":"daemon"/.test(String(text))) return
    })()
    await writeFile(join(home.config, 'agents.yaml'), 'agents: 5\n')
    await assert.rejects(client.post('/daemon/reload'), { code: 'config-invalid' })
    await heard
    stream.destroy()
    client.close()
    child.kill('SIGTERM')
    await ended
  })
})

/** Exits when it is to serve, after making sure that no other daemon can write daemon.json. */
const exitsOnServe = `
const { mkdirSync, rmSync } = require('node:fs')
process.on('message', ({ kind, protocol }) => {
  if (kind === 'hello')
    process.send({ kind: 'ready', protocol, version: '9', lockToken: '', places: [] })
  if (kind === 'lead') {
    rmSync('run/daemon.json')
    mkdirSync('run/daemon.json')
    process.send({ kind: 'leading' })
  }
  if (kind === 'serve') process.exit(3)
})
`

/** Is ready to take over, and exits when it gets the lock. */
const exitsOnLead = `
process.on('message', ({ kind, protocol }) => {
  if (kind === 'hello')
    process.send({ kind: 'ready', protocol, version: '9', lockToken: '', places: [] })
  if (kind === 'lead') process.exit(3)
})
`

/** A daemon of a package that is a copy of ours. */
const startInstalled = async () => {
  const folder = await temporaryFolder()
  for (const name of ['assets', 'config', 'package.json'])
    await cp(join(root, name), join(folder, name), { recursive: true })
  await mkdir(join(folder, 'dist', 'bin'), { recursive: true })
  for (const name of [...(await partsOfDaemon()), 'idiomorph.js'])
    await cp(join(bin, name), join(folder, 'dist', 'bin', name))
  const home = await temporaryHome()
  const child = spawn(process.execPath, [join(folder, daemonProgram), '--home', home.root], {
    env: cleanEnvironment({ DOORWARD_PORT: '0' }),
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  await once(child, 'message')
  return { folder, home, child, ended }
}
