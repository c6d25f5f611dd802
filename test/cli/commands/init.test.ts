import assert from 'node:assert/strict'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { resolveHome } from '../../../shared/home/home.ts'
import { temporaryFolder } from '../../support/temporary.ts'
import { run } from '../support/cli.ts'

const newHome = async () => resolveHome(join(await temporaryFolder(), 'home'))

describe('cli: init', () => {
  it('writes configuration, schemas and a secret that no one else can read', async () => {
    const home = await newHome()
    const { code, stdout, stderr } = await run(['init'], { home })
    assert.equal(code, 0)
    assert.match(stdout, /created .*webhooks\.yaml/)
    assert.match(stderr, /next:/)
    const env = await readFile(home.env, 'utf8')
    const [secret] = /(?<=^GITHUB_WEBHOOK_SECRET=)[0-9a-f]{64}$/m.exec(env) ?? []
    assert.ok(secret)
    assert.ok(!`${stdout}${stderr}`.includes(secret))
    assert.equal((await stat(home.env)).mode & 0o777, 0o600)
    const check = await run(['config', 'check'], { home })
    assert.deepEqual([check.code, check.stderr], [0, ''])
  })

  it('changes nothing the second time, and says so', async () => {
    const home = await newHome()
    await run(['init'], { home })
    const files = [
      home.env,
      ...['webhooks', 'agents'].map((name) => join(home.config, `${name}.yaml`)),
    ]
    const before = await Promise.all(files.map(async (path) => readFile(path, 'utf8')))
    const { code, stdout } = await run(['init'], { home })
    assert.equal(code, 0)
    assert.match(stdout, /nothing was changed/)
    const after = await Promise.all(files.map(async (path) => readFile(path, 'utf8')))
    assert.deepEqual(after, before)
  })

  it('keeps what is there: own files, and other lines of .env', async () => {
    const home = await newHome()
    await run(['init'], { home })
    const own = join(home.config, 'webhooks.yaml')
    await writeFile(own, 'webhooks: []\n')
    await writeFile(home.env, '# mine\nOTHER=1', { mode: 0o600 })
    const { code, stdout } = await run(['init', '--json'], { home })
    assert.equal(code, 0)
    assert.deepEqual(JSON.parse(stdout), { home: home.root, created: [home.env] })
    assert.equal(await readFile(own, 'utf8'), 'webhooks: []\n')
    assert.match(
      await readFile(home.env, 'utf8'),
      /^# mine\nOTHER=1\nGITHUB_WEBHOOK_SECRET=[0-9a-f]{64}\n$/,
    )
  })

  it('brings schema files up to date', async () => {
    const home = await newHome()
    await run(['init'], { home })
    const schema = join(home.config, 'schema', 'agents.json')
    await writeFile(schema, '{}')
    const { stdout } = await run(['init', '--json'], { home })
    assert.deepEqual((JSON.parse(stdout) as { created: string[] }).created, [schema])
  })

  it('refuses a secret file that others can read, with the command that mends it', async function () {
    if (process.platform === 'win32') return this.skip()
    const home = await newHome()
    await run(['init'], { home })
    await chmod(home.env, 0o644)
    const { code, stderr } = await run(['init', '--json'], { home })
    assert.equal(code, 1)
    const error = JSON.parse(stderr) as { code: string; hint: string }
    assert.equal(error.code, 'home-insecure')
    assert.match(error.hint, /^chmod 600 /)
  })

  it('says which folder cannot be made', async () => {
    const file = join(await temporaryFolder(), 'file')
    await writeFile(file, '')
    const { code, stderr } = await run(['init', '--home', join(file, 'home'), '--json'])
    assert.equal(code, 1)
    assert.equal((JSON.parse(stderr) as { code: string }).code, 'home-unusable')
  })
})
