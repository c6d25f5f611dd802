import assert from 'node:assert/strict'
import {
  chmod,
  chown,
  mkdir,
  readdir,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'
import { type Home, resolveHome, prepareHome, readSecretFile } from '../../../shared/home/home.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const posix = process.platform !== 'win32'

const refused = async (
  tried: Promise<unknown>,
  code: ErrorCode,
  message: RegExp,
  hint?: string,
): Promise<void> =>
  assert.rejects(tried, (error: unknown) => {
    assert.ok(error instanceof DoorwardError, String(error))
    assert.deepEqual([error.code, message.test(error.message)], [code, true], error.message)
    if (hint !== undefined) assert.equal(error.hint, hint)
    return true
  })

const newHome = async (): Promise<Home> => resolveHome(join(await temporaryFolder(), 'home'))

const modeOf = async (path: string) => (await stat(path)).mode & 0o777

describe('the home', () => {
  it('is the one named by --home, else DOORWARD_HOME, else .doorward of the user', () => {
    const root = (option: string | undefined, env: NodeJS.ProcessEnv) =>
      resolveHome(option, env).root
    assert.equal(root('/a', { DOORWARD_HOME: '/b' }), resolve('/a'))
    assert.equal(root(undefined, { DOORWARD_HOME: '/b' }), resolve('/b'))
    assert.equal(root('rel', {}), resolve('rel'))
    assert.equal(root('~/a', {}), join(homedir(), 'a'))
    assert.equal(root(undefined, { DOORWARD_HOME: '~' }), homedir())
    assert.equal(root('~a', {}), resolve('~a'))
    for (const env of [{}, { DOORWARD_HOME: '' }])
      assert.equal(root(undefined, env), join(homedir(), '.doorward'))
  })

  it('is made with all its folders, for its owner alone', async () => {
    const home = resolveHome(join(await temporaryFolder(), 'not', 'yet', 'there'))
    await prepareHome(home)
    await prepareHome(home)
    assert.deepEqual((await readdir(home.root)).toSorted(), [
      'clients',
      'config',
      'logs',
      'run',
      'tokens',
    ])
    assert.deepEqual(await readdir(home.run), [])
    if (!posix) return
    for (const folder of [home.root, home.config, home.logs, home.run, home.tokens, home.clients])
      assert.equal(await modeOf(folder), 0o700)
  })

  it('is closed to others where they could only read what is no secret', async () => {
    if (!posix) return
    const home = await newHome()
    await prepareHome(home)
    for (const folder of [home.root, home.config, home.logs]) await chmod(folder, 0o755)
    await prepareHome(home)
    for (const folder of [home.root, home.config, home.logs])
      assert.equal(await modeOf(folder), 0o700)
  })

  it('is refused with the chmod to run where secrets lay open, or others could write', async () => {
    if (!posix) return
    const home = resolveHome(join(await temporaryFolder(), "it's a home"))
    await prepareHome(home)
    for (const [folder, mode] of [
      [home.tokens, 0o755],
      [home.tokens, 0o701],
      [home.run, 0o750],
      [home.clients, 0o705],
      [home.root, 0o777],
      [home.config, 0o720],
      [home.logs, 0o702],
    ] as const) {
      await chmod(folder, mode)
      await refused(
        prepareHome(home),
        'home-insecure',
        new RegExp(`is open to other users \\(mode ${mode.toString(8)}\\)$`),
        `chmod 700 '${folder.replaceAll("'", "'\\''")}'`,
      )
      assert.equal(await modeOf(folder), mode)
      await chmod(folder, 0o700)
      await prepareHome(home)
    }
  })

  it('is refused when a folder of it belongs to another user', async () => {
    if (!posix) return
    const home = await newHome()
    await prepareHome(home)
    await rm(home.tokens, { recursive: true })
    if (process.getuid?.() === 0) {
      await mkdir(home.tokens, { mode: 0o700 })
      await chown(home.tokens, 65_534, 65_534)
    } else await symlink('/usr', home.tokens)
    await refused(prepareHome(home), 'home-insecure', /belongs to another user \(\d+\)$/)
  })

  it('may be a link, and is then as safe as what it leads to', async () => {
    if (!posix) return
    const folder = await temporaryFolder()
    const real = join(folder, 'real')
    await mkdir(real, { mode: 0o700 })
    await symlink(real, join(folder, 'link'))
    const home = resolveHome(join(folder, 'link'))
    await prepareHome(home)
    assert.ok((await readdir(real)).includes('tokens'))
    await chmod(real, 0o777)
    await refused(prepareHome(home), 'home-insecure', /mode 777/, `chmod 700 ${home.root}`)
    await chmod(real, 0o700)
    await prepareHome(home)
  })

  it('is refused when something else has its name, or the name of one of its folders', async () => {
    const folder = await temporaryFolder()
    await writeFile(join(folder, 'file'), '')
    await refused(
      prepareHome(resolveHome(join(folder, 'file'))),
      'home-unusable',
      /^cannot use the folder .*: a file of that name already exists$/,
    )
    await refused(
      prepareHome(resolveHome(join(folder, 'file', 'below'))),
      'home-unusable',
      /a part of the path is a file, not a folder$/,
    )
    const home = await newHome()
    await mkdir(home.root, { mode: 0o700 })
    await writeFile(home.run, '')
    await refused(prepareHome(home), 'home-unusable', /run: a file of that name already exists$/)
  })

  it('is refused where a link leads to nothing', async () => {
    if (!posix) return
    const folder = await temporaryFolder()
    await symlink('disk', join(folder, 'link'))
    for (const name of ['link', 'link/home', 'link/of/home'])
      await refused(
        prepareHome(resolveHome(join(folder, name))),
        'home-unusable',
        /a file of that name already exists$/,
      )
    await mkdir(join(folder, 'disk'))
    await prepareHome(resolveHome(join(folder, 'link/of/home')))
    assert.equal(await modeOf(join(folder, 'disk/of')), 0o700)
  })

  it('is refused where no folder can be made, at once', async () => {
    if (process.platform !== 'linux') return
    for (const root of ['/proc/home', '/proc/self/of/home'])
      await refused(prepareHome(resolveHome(root)), 'home-unusable', /: no such file$/)
  })

  it('is refused when nothing can be written there', async () => {
    const home = await newHome()
    await prepareHome(home)
    await mkdir(join(home.run, `.probe-${process.pid}`))
    await refused(prepareHome(home), 'home-unusable', /^cannot write to .*run: it is a folder$/)
  })
})

describe('a secret file', () => {
  const secretFile = async (): Promise<string> => {
    const path = join(await temporaryFolder(), 'a secret')
    await writeFile(path, 'the-secret\n', { mode: 0o600 })
    return path
  }

  it('is read as it is, and is undefined where there is none', async () => {
    const path = await secretFile()
    assert.equal(await readSecretFile(path), 'the-secret\n')
    assert.equal(await readSecretFile(`${path}-not`), undefined)
  })

  it('is refused with the chmod to run when others can read or write it', async () => {
    if (!posix) return
    const path = await secretFile()
    for (const mode of [0o640, 0o604, 0o620, 0o602, 0o777]) {
      await chmod(path, mode)
      await refused(
        readSecretFile(path),
        'home-insecure',
        new RegExp(`mode ${mode.toString(8)}\\)$`),
        `chmod 600 '${path}'`,
      )
    }
    await chmod(path, 0o600)
    assert.equal(await readSecretFile(path), 'the-secret\n')
  })

  it('is refused when it belongs to another user', async () => {
    if (process.getuid?.() !== 0) return assert.ok(true)
    const path = await secretFile()
    await chown(path, 65_534, 65_534)
    return refused(
      readSecretFile(path),
      'home-insecure',
      /belongs to another user \(65534\)$/,
      `sudo chown 0 '${path}'`,
    )
  })

  it('is refused when it is a link, even to a good one or to nothing', async () => {
    if (!posix) return
    const path = await secretFile()
    for (const target of [path, `${path}-not`]) {
      const link = join(await temporaryFolder(), 'link')
      await symlink(target, link)
      await refused(readSecretFile(link), 'home-insecure', /is a symbolic link$/)
    }
  })

  it('is refused with 6 GB, which a sparse file has for nothing', async () => {
    const path = await secretFile()
    await truncate(path, 1024 * 1024)
    assert.equal((await readSecretFile(path))?.length, 1024 * 1024)
    await truncate(path, 6e9)
    await refused(readSecretFile(path), 'home-unusable', /has more than 1 MiB, so it is not read$/)
  })

  it('is refused when it is a folder or a pipe, without waiting for a writer', async () => {
    if (!posix) return
    const folder = await temporaryFolder()
    await refused(readSecretFile(folder), 'home-unusable', /is not a file$/)
    const pipe = join(folder, 'pipe')
    const { execFileSync } = await import('node:child_process')
    execFileSync('mkfifo', ['-m', '600', pipe])
    await refused(readSecretFile(pipe), 'home-unusable', /is not a file$/)
  })
})
