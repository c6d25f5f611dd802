import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { appendToFile, tryFile } from '../../../../daemon/delivery/targets/file.ts'
import { temporaryFolder } from '../../../support/temporary.ts'

const makeReply = (text = 'an answer') => ({
  eventId: 'evt_1',
  webhook: '/github',
  receivedAt: new Date(Date.UTC(2026, 0, 1)),
  text,
})
const section = '## 2026-01-01T00:00:00.000Z /github\n\n<!-- evt_1 -->\nan answer\n\n'

describe('delivery to a file', () => {
  let home: string
  beforeEach(async () => {
    home = await temporaryFolder()
  })

  it('appends a section to a file under home, and creates file and folders for the owner only', async () => {
    await appendToFile('a/b/answers.md', makeReply('an answer\n\n'), home)
    const { made } = await appendToFile('a/b/answers.md', makeReply(), home)
    const path = join(home, 'a/b/answers.md')
    assert.deepEqual(made, { what: 'file', url: pathToFileURL(path).href })
    assert.equal(await readFile(path, 'utf8'), section + section)
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.equal((await stat(join(home, 'a'))).mode & 0o777, 0o700)
  })

  it('keeps escape sequences out of the file', async () => {
    await appendToFile('a.md', makeReply('\u001b[2Jan \u001b]0;title\u0007answer\u0008\r\n'), home)
    assert.equal(await readFile(join(home, 'a.md'), 'utf8'), section)
  })

  it('keeps the content and the mode of a file', async () => {
    const path = join(home, 'mine.md')
    await writeFile(path, 'before\n')
    await chmod(path, 0o640)
    await appendToFile(path, makeReply(), await temporaryFolder())
    assert.equal(await readFile(path, 'utf8'), `before\n${section}`)
    assert.equal((await stat(path)).mode & 0o777, 0o640)
  })

  it('creates no folder outside home', async () => {
    await assert.rejects(
      appendToFile(join(home, 'no/answers.md'), makeReply(), await temporaryFolder()),
      {
        code: 'delivery-failed',
        message: /folder does not exist/,
      },
    )
    await assert.rejects(stat(join(home, 'no')), { code: 'ENOENT' })
  })

  it('refuses a link, even a dangling one, and writes nothing through it', async () => {
    await writeFile(join(home, 'real.md'), '')
    await symlink(join(home, 'real.md'), join(home, 'link.md'))
    await symlink(join(home, 'nothing.md'), join(home, 'broken.md'))
    for (const name of ['link.md', 'broken.md'])
      await assert.rejects(appendToFile(name, makeReply(), home), {
        code: 'delivery-failed',
        message: /symbolic link/,
      })
    assert.equal(await readFile(join(home, 'real.md'), 'utf8'), '')
    await assert.rejects(stat(join(home, 'nothing.md')), { code: 'ENOENT' })
  })

  it('refuses a named pipe immediately, and a folder and a device', async () => {
    execFileSync('mkfifo', [join(home, 'pipe')])
    await mkdir(join(home, 'folder'))
    for (const path of ['pipe', 'folder', '/dev/null'])
      await assert.rejects(appendToFile(path, makeReply(), home), { code: 'delivery-failed' })
  })

  it('says what is wrong when a part of the path is a file', async () => {
    await writeFile(join(home, 'file'), '')
    for (const path of ['file/answers.md', 'file/deeper/answers.md'])
      await assert.rejects(appendToFile(path, makeReply(), home), { code: 'delivery-failed' })
  })

  it('says what is wrong with a name that is too long', async () => {
    await assert.rejects(appendToFile('é'.repeat(300), makeReply(), home), {
      code: 'delivery-failed',
      message: /é: its name is too long$/,
    })
  })

  it('keeps concurrent sections whole', async () => {
    const letters = 'abcdefghijklmnop'.split('')
    await Promise.all(
      letters.map((letter) => appendToFile('all.md', makeReply(letter.repeat(300_000)), home)),
    )
    const text = await readFile(join(home, 'all.md'), 'utf8')
    const bodies = [...text.matchAll(/-->\n(\w+)\n\n/g)].map((match) => match[1] ?? '')
    assert.deepEqual(
      bodies.map((body) => [body.length, new Set(body).size]),
      letters.map(() => [300_000, 1]),
    )
    assert.deepEqual(bodies.map((body) => body.slice(0, 1)).toSorted(), letters)
  })

  it('fails when only a part could be written', function () {
    if (process.platform === 'win32') return this.skip()
    const program = fileURLToPath(
      new URL('../../../../../test/fixtures/appends-answer.mjs', import.meta.url),
    )
    // Limit files to 8 blocks, as on a full disk.
    const limited = ['-c', 'ulimit -f 8; exec "$0" "$@"', process.execPath, program]
    const ending = execFileSync('sh', [...limited, join(home, 'answers.md')], { encoding: 'utf8' })
    assert.equal(ending, 'delivery-failed')
    return undefined
  })

  it("never writes into doorward's own files, however they are written", async () => {
    await writeFile(join(home, '.env'), 'SECRET=a\n')
    const names = [
      'accounts.json',
      '.env',
      '.ENV',
      '.env.',
      'x/../.env',
      'config/webhooks.yaml',
      'run/api.token',
    ]
    for (const path of [
      ...names,
      ...names.map((name) => join(home, name)),
      'tokens/x',
      'token\u017f/x',
      'clients/x',
      'logs/daemon.log',
      'logs/daemon.log.1',
      'logs/daemon.stderr',
    ])
      await assert.rejects(appendToFile(path, makeReply('SECRET=b'), home), {
        code: 'delivery-failed',
        message: /own files/,
      })
    assert.equal(await readFile(join(home, '.env'), 'utf8'), 'SECRET=a\n')
    for (const path of ['.env.md', 'configs/a.md', 'answers/.env', 'logs/a.md'])
      await appendToFile(path, makeReply(), home)
  })

  it("never writes into doorward's own files through a link", async () => {
    const real = await temporaryFolder()
    const linked = join(home, 'home')
    await symlink(real, linked)
    await mkdir(join(real, 'tokens'))
    await symlink('tokens', join(real, 'reviews'))
    for (const [path, homeFolder] of [
      [join(real, '.env'), linked],
      [join(linked, '.env'), real],
      ['reviews/google.json', real],
      ['reviews/google.json', linked],
    ] as const)
      await assert.rejects(appendToFile(path, makeReply('SECRET=b'), homeFolder), {
        code: 'delivery-failed',
        message: /own files/,
      })
    assert.deepEqual((await readdir(real)).toSorted(), ['reviews', 'tokens'])
    assert.deepEqual(await readdir(join(real, 'tokens')), [])
  })

  it('has a dry run that leaves no trace and fails with the same words', async () => {
    const linked = join(home, 'home')
    await mkdir(join(home, 'real/tokens'), { recursive: true })
    await symlink('real', linked)
    await symlink('tokens', join(linked, 'reviews'))
    await symlink('nowhere', join(linked, 'link.md'))
    await mkdir(join(linked, 'folder'))
    await writeFile(join(linked, 'file'), '')
    execFileSync('mkfifo', [join(linked, 'pipe')])
    const before = await readdir(home, { recursive: true })
    const tried = async (path: string) =>
      tryFile(path, linked).then(
        () => 'done',
        ({ message }: Error) => message,
      )
    const good = ['new.md', 'a/b/c.md', 'file', join(home, 'new.md')]
    for (const path of good) assert.equal(await tried(path), 'done', path)
    assert.deepEqual(await readdir(home, { recursive: true }), before)
    for (const path of [
      '.env',
      'reviews/a.md',
      'reviews/b/a.md',
      'link.md',
      'link.md/a.md',
      'folder',
      'file/a.md',
      'pipe',
      join(home, 'no/a.md'),
      'é'.repeat(300),
    ]) {
      const message = await tried(path)
      assert.notEqual(message, 'done', path)
      await assert.rejects(appendToFile(path, makeReply(), linked), { message }, path)
    }
  })

  it('quotes nothing of the answer in its error', async () => {
    await assert.rejects(
      appendToFile(join(home, 'no/answers.md'), makeReply('canary'), home),
      (error: Error) => !/canary/.test(`${error.message} ${String(error.cause)}`),
    )
  })
})
