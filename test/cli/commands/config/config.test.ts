import assert from 'node:assert/strict'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { startDaemon } from '../../../support/daemon/daemon.ts'
import { temporaryFolder, temporaryHome } from '../../../support/temporary.ts'
import { hasTerminal, resultOf, run, startOnTerminal, untilSaid } from '../../support/cli.ts'

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

  it('warns of a file whose folder is not there and is not made', async () => {
    const folder = await temporaryFolder()
    const targets = [
      join(folder, 'gone/a.md'),
      join(folder, 'gone/{{event.x}}/a.md'),
      join(folder, 'a.md'),
      join(folder, '{{event.x}}.md'),
      'gone/a.md',
    ].map((path) => `file:${path}`)
    const entry = `path: /a, agent: echo, prompt_template: x, deliver_to: ${JSON.stringify(targets)}`
    const home = await temporaryHome({ webhooks: `webhooks: [{ ${entry} }]\n` })
    const { code, stdout } = await run(['config', 'check', '--json'], { home })
    const { warnings } = JSON.parse(stdout) as { warnings: { code: string; detail: string }[] }
    assert.equal(code, 0)
    assert.deepEqual(
      warnings
        .filter(({ code: kind }) => kind === 'target-folder-missing')
        .map(({ detail }) => detail),
      targets
        .slice(0, 2)
        .map(
          (target) =>
            `target ${target}: the folder ${folder}/gone does not exist; nothing can be delivered there`,
        ),
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
    assert.match(good.stderr, /the daemon reloaded its configuration/)
    const bad = await edit('agents: 3\n')
    assert.equal(bad.code, 1)
    assert.match(bad.stderr, /the daemon keeps its previous configuration/)
    await daemon.stop()
  })

  it('opens .env, and closes it to others when the editor did not', async () => {
    const home = await temporaryHome()
    const editor = join(await temporaryFolder(), 'my editor.mjs')
    await writeFile(
      editor,
      `import { chmodSync, writeFileSync } from 'node:fs'
const path = process.argv.at(-1)
writeFileSync(path + '.new', 'made by an editor')
writeFileSync(path, 'A=1\\n')
chmodSync(path, 0o644)`,
    )
    const env = { VISUAL: `"${process.execPath}" '${editor}'` }
    const { code, stderr } = await run(['config', 'edit', 'env'], { home, env })
    assert.equal(code, 0, stderr)
    assert.match(stderr, /its mode is 0600 again/)
    assert.equal(await readFile(home.env, 'utf8'), 'A=1\n')
    assert.equal((await stat(home.env)).mode & 0o777, 0o600)
    assert.equal((await stat(`${home.env}.new`)).mode & 0o777, 0o600)
  })

  it('tells an editor that comes back at once to wait', async () => {
    const home = await temporaryHome()
    const folder = await temporaryFolder()
    const code = join(folder, 'code')
    await writeFile(code, `#!/bin/sh\necho "$@" > '${folder}/args'\n`)
    await chmod(code, 0o700)
    const { stderr } = await run(['config', 'edit', 'gateway'], { home, env: { EDITOR: code } })
    assert.match(stderr, /nothing was changed/)
    const path = join(home.config, 'gateway.yaml')
    assert.equal(await readFile(join(folder, 'args'), 'utf8'), `--wait ${path}\n`)
  })

  it('offers on a terminal to open a broken file again', async function () {
    if (!hasTerminal()) return this.skip()
    const home = await temporaryHome()
    const editor = join(await temporaryFolder(), 'editor.mjs')
    // Breaks the file at first, and mends it the second time.
    await writeFile(
      editor,
      `import { readFileSync, writeFileSync } from 'node:fs'
const path = process.argv.at(-1)
const isBroken = readFileSync(path, 'utf8').includes('odd')
writeFileSync(path, isBroken ? 'webhooks: []\\n' : 'odd: 1\\n')`,
    )
    const env = { EDITOR: `${process.execPath} ${editor}` }
    const child = startOnTerminal('config edit', { home, env })
    await untilSaid(child, 'stdout', /odd: unknown key[^]*open it again\? \[Y\/n\]/)
    child.stdin?.write('\n')
    const { code, stdout } = await resultOf(child)
    assert.equal(code, 0)
    assert.match(stdout, /ok: 0 webhooks/)
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
