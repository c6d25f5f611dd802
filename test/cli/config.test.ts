import assert from 'node:assert/strict'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startDaemon } from '../support/daemon.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'
import { run } from './support/cli.ts'

const broken = `webhooks:
  - path: /a
    agent: eco
    prompt_template: hello
    secret_evn: X
  - path: /events
    agent: echo
`

describe('cli: config', () => {
  it('accepts a configuration and says what it holds', async () => {
    const home = await temporaryHome()
    const { code, stdout, stderr } = await run(['config', 'check'], { home })
    assert.deepEqual([code, stdout, stderr], [0, 'ok: 0 webhooks, 1 agent\n', ''])
  })

  it('prints every problem at once with file, line and column, and ends with 1', async () => {
    const home = await temporaryHome({ webhooks: broken, gateway: 'server: { prot: 1 }\n' })
    const { code, stdout } = await run(['config', 'check'], { home })
    assert.equal(code, 1)
    const lines = stdout.trimEnd().split('\n')
    assert.ok(lines.length >= 3)
    for (const line of lines) assert.match(line, /^\/.*\.yaml:\d+:\d+ \S+: /)
    assert.match(
      stdout,
      /webhooks\.yaml:5:5 webhooks\[0\]\.secret_evn: unknown key \(did you mean "secret_env"\?\)/,
    )
    assert.match(stdout, /gateway\.yaml:1:/)
  })

  it('gives the problems as JSON', async () => {
    const home = await temporaryHome({ webhooks: 'webhooks: [\n' })
    const { code, stdout } = await run(['config', 'check', '--json'], { home })
    assert.equal(code, 1)
    const answer = JSON.parse(stdout) as { ok: boolean; problems: { line: number }[]; warnings: [] }
    assert.equal(answer.ok, false)
    assert.ok(answer.problems.every(({ line }) => line > 0))
    assert.deepEqual(answer.warnings, [])
  })

  it('warns of what works but should not stay so', async () => {
    const webhooks = 'webhooks:\n  - { path: /a, agent: echo, prompt_template: x }\n'
    const home = await temporaryHome({ webhooks })
    const text = await run(['config', 'check'], { home })
    assert.equal(text.code, 0)
    assert.match(text.stderr, /^warning: webhook \/a has no secret_env/)
    const json = await run(['config', 'check', '--json'], { home })
    assert.equal(json.stderr, '')
    const { warnings } = JSON.parse(json.stdout) as { warnings: { code: string }[] }
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['webhook-unsigned'],
    )
  })

  it('prints the folder', async () => {
    const home = await temporaryHome()
    assert.equal((await run(['config', 'path'], { home })).stdout, `${home.config}\n`)
    const { stdout } = await run(['config', 'path', '--json', '--home', home.root])
    assert.deepEqual(JSON.parse(stdout), { path: home.config })
  })

  it('opens the file in the editor without a shell, and checks it afterwards', async () => {
    const home = await temporaryHome()
    const editor = join(await temporaryFolder(), 'editor.mjs')
    await writeFile(
      editor,
      `import { appendFileSync } from 'node:fs'
appendFileSync(process.argv.at(-1), '# ' + process.argv.slice(2, -1).join('|') + '\\nodd: 1\\n')`,
    )
    await chmod(editor, 0o700)
    const env = { EDITOR: `${process.execPath} ${editor} --wait $(id)` }
    const { code, stdout } = await run(['config', 'edit', 'agents'], { home, env })
    assert.match(
      await readFile(join(home.config, 'agents.yaml'), 'utf8'),
      /# --wait\|\$\(id\)\nodd: 1/,
    )
    assert.equal(code, 1)
    assert.match(stdout, /agents\.yaml:\d+:1 odd: unknown key/)
  })

  it('lets a daemon that runs take what was edited, when it is good', async () => {
    const daemon = await startDaemon()
    const editor = join(await temporaryFolder(), 'editor.mjs')
    const { home } = daemon
    const edit = async (text: string) => {
      await writeFile(
        editor,
        `import { writeFileSync } from 'node:fs'\nwriteFileSync(process.argv.at(-1), ${JSON.stringify(text)})`,
      )
      return run(['config', 'edit', 'agents'], {
        home,
        env: { EDITOR: `${process.execPath} ${editor}` },
      })
    }
    const good = await edit('agents: { echo: { kind: echo }, other: { kind: echo } }\n')
    assert.deepEqual([good.code, good.stdout], [0, 'ok: 0 webhooks, 2 agents\n'])
    assert.match(good.stderr, /the daemon has taken it/)
    const bad = await edit('agents: 3\n')
    assert.equal(bad.code, 1)
    assert.doesNotMatch(bad.stderr, /taken/)
    await daemon.stop()
  })

  it('ends with 1 when the editor fails, and with 2 when there is none', async () => {
    const home = await temporaryHome()
    const failing = await run(['config', 'edit'], { home, env: { VISUAL: 'false' } })
    assert.equal(failing.code, 1)
    const missing = await run(['config', 'edit'], { home, env: { EDITOR: '/no/such/editor' } })
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /cannot run the editor/)
  })
})
