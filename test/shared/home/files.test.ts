import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  readFile,
  readdir,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { systemCode } from '../../../shared/errors.ts'
import { writeFileAtomic } from '../../../shared/home/files.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const failsWith = async (code: string, written: Promise<void>) =>
  assert.rejects(written, (error: unknown) => systemCode(error) === code)

describe('a file that is written whole', () => {
  it('has its content and is for its owner alone', async () => {
    const path = join(await temporaryFolder(), 'file')
    await writeFileAtomic(path, 'one')
    await writeFileAtomic(path, 'two ü')
    assert.equal(await readFile(path, 'utf8'), 'two ü')
    if (process.platform !== 'win32') assert.equal((await stat(path)).mode & 0o777, 0o600)
  })

  it('is on the disk before it takes its place, and the folder with it afterwards', async function () {
    if (process.platform === 'win32') return this.skip()
    const folder = await temporaryFolder()
    const path = join(folder, 'file')
    await writeFileAtomic(path, 'old')
    const handle = await open(path)
    await handle.close()
    const prototype = Object.getPrototypeOf(handle) as FileHandle
    const sync: unknown = Reflect.get(prototype, 'sync')
    assert.ok(typeof sync === 'function')
    const seen: string[] = []
    prototype.sync = async function (this: FileHandle) {
      const what = (await this.stat()).isDirectory() ? 'folder' : 'file'
      seen.push(`${what} while it says ${await readFile(path, 'utf8')}`)
      await Reflect.apply(sync, this, [])
    }
    try {
      await writeFileAtomic(path, 'new')
    } finally {
      Reflect.set(prototype, 'sync', sync)
    }
    assert.deepEqual(seen, ['file while it says old', 'folder while it says new'])
    return undefined
  })

  it('is for its owner alone again after it was open to others', async function () {
    const path = join(await temporaryFolder(), 'file')
    await writeFile(path, 'old', { mode: 0o666 })
    await writeFileAtomic(path, 'new')
    if (process.platform !== 'win32') assert.equal((await stat(path)).mode & 0o777, 0o600)
    await writeFileAtomic(path, 'public', 0o644)
    assert.equal(await readFile(path, 'utf8'), 'public')
    if (process.platform !== 'win32') assert.equal((await stat(path)).mode & 0o777, 0o644)
  })

  it('takes the place of a planted link, and leaves what that leads to', async () => {
    const folder = await temporaryFolder()
    const [path, elsewhere] = [join(folder, 'file'), join(folder, 'elsewhere')]
    await writeFile(elsewhere, 'theirs')
    await symlink(elsewhere, path)
    await writeFileAtomic(path, 'ours')
    assert.equal((await lstat(path)).isSymbolicLink(), false)
    assert.deepEqual(
      [await readFile(path, 'utf8'), await readFile(elsewhere, 'utf8')],
      ['ours', 'theirs'],
    )
  })

  it('leaves nothing behind when it cannot be written', async () => {
    const folder = await temporaryFolder()
    await failsWith('ENOENT', writeFileAtomic(join(folder, 'missing', 'file'), 'x'))
    await mkdir(join(folder, 'taken'))
    await writeFile(join(folder, 'taken', 'file'), 'x')
    await assert.rejects(writeFileAtomic(join(folder, 'taken'), 'x'))
    assert.deepEqual(await readdir(folder), ['taken'])
  })

  it('is the last of many that are written at once, and never a mixture', async () => {
    const folder = await temporaryFolder()
    const path = join(folder, 'file')
    const texts = Array.from({ length: 40 }, (_, index) => `${index} `.repeat(10_000))
    await Promise.all(texts.map((text) => writeFileAtomic(path, text)))
    assert.ok(texts.includes(await readFile(path, 'utf8')))
    assert.deepEqual(await readdir(folder), ['file'])
  })

  it('is the old or the new one, whenever its writer is killed', async () => {
    const path = join(await temporaryFolder(), 'file')
    const length = 400_000
    await writeFileAtomic(path, 'a'.repeat(length))
    const program = `
      import { writeFileAtomic } from ${JSON.stringify(new URL('../../../shared/home/files.js', import.meta.url).href)}
      for (let turn = 0; ; turn += 1) {
        const written = writeFileAtomic(process.argv[1], 'abc'[turn % 3].repeat(${length}))
        process.send(turn)
        await written
      }`
    for (let round = 0; round < 18; round += 1) {
      const writer = spawn(process.execPath, ['--input-type=module', '-e', program, path], {
        stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      })
      // Another moment in every round: so many turns in, and so long after the turn's beginning.
      for (let turn = 0; turn <= round % 6; turn += 1) await once(writer, 'message')
      for (let pause = 0; pause < round / 6; pause += 1)
        await new Promise((resolve) => setImmediate(resolve))
      writer.kill('SIGKILL')
      await once(writer, 'exit')
      const text = await readFile(path, 'utf8')
      assert.equal(text.length, length)
      assert.equal(text, text.charAt(0).repeat(length))
    }
  }).timeout(60_000)
})
