import assert from 'node:assert/strict'
import { join } from 'node:path'
import { builtInProviders } from '../../../shared/config/name-forms.ts'
import type { EventDetail } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { fixtureAgent } from '../../support/fixtures.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'
import { answers, hasTerminal, run } from '../support/cli.ts'
import { startContractServer } from '../support/contract-server.ts'
import { type ShellName, startShell } from '../support/shell.ts'

const webhooks = `webhooks:
  - { path: /webhook/github, agent: echo, prompt_template: x }
  - { path: "/webhook/odd;touch$IFS'p(w)n", agent: echo, prompt_template: x }
  - { path: /fails, agent: broken, prompt_template: x }
  - { path: /slow, agent: slow, prompt_template: x }
`
const agents = `agents:
  echo: { kind: echo }
  broken: { kind: command, command: ["${process.execPath}", -e, "process.exit(3)"] }
  slow: { kind: command, command: ${JSON.stringify(fixtureAgent('sleeps-for-ever'))} }
`

describe('cli: completion', () => {
  let daemon: RunningDaemon
  let failed: string
  let done: string
  let running: string
  before(async () => {
    daemon = await startDaemon({ webhooks, agents })
    const { home } = daemon
    const send = async (path: string) => {
      const args = ['webhook', 'send', path, '-', '--wait', '--json']
      return (JSON.parse((await run(args, { home, stdin: '{}' })).stdout) as EventDetail).id
    }
    failed = await send('/fails')
    done = await send('/webhook/github')
    const { stdout } = await run(['webhook', 'send', '/slow', '-', '--json'], { home, stdin: '{}' })
    running = (JSON.parse(stdout) as EventDetail).id
  })
  after(async () => {
    await run(['events', 'cancel', running], { home: daemon.home })
    await daemon.stop()
  })

  /** What could stand in place of the last word. */
  const asked = async (words: readonly string[], home = daemon.home): Promise<string[]> => {
    const { code, stdout, stderr } = await run(['__complete', '--', ...words], { home })
    assert.deepEqual([code, stderr], [0, ''])
    return stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => line.split('\t')[0] ?? '')
  }

  const names: readonly ShellName[] = ['bash', 'bash with bash-completion', 'zsh', 'fish']
  for (const name of names)
    it(`completes commands, options and what there is now in ${name}`, async function () {
      if (!hasTerminal()) return this.skip()
      this.timeout(60_000)
      const shell = await startShell(name, daemon.home)
      const cases: readonly (readonly [string, string])[] = [
        ['doorward oau\tlogi\tgith\t', 'doorward oauth login github'],
        ['doorward events --fol\t', 'doorward events --follow'],
        ['doorward events --state fai\t', 'doorward events --state failed'],
        ['doorward oauth token --format header-\t', 'doorward oauth token --format header-json'],
        ['doorward events --webhook=/webhook/g\t', 'doorward events --webhook=/webhook/github'],
        ['doorward webhook send /webhook/gi\t', 'doorward webhook send /webhook/github'],
        [
          'doorward webhook send /x --sample github:pus\t',
          'doorward webhook send /x --sample github:push',
        ],
        ['doorward config edit gat\t', 'doorward config edit gateway'],
        [`doorward events show ${done.slice(0, 12)}\t`, `doorward events show ${done}`],
        ['doorward events retry evt\t', `doorward events retry ${failed}`],
        ['doorward events cancel evt\t', `doorward events cancel ${running}`],
        [
          'doorward webhook send /webhook/od\t',
          "doorward webhook send /webhook/odd;touch$IFS'p(w)n",
        ],
      ]
      for (const [keys, line] of cases) assert.equal(await shell.typed(keys), line)
      await shell.shown('doorward events show evt_\t\t', /failed \/fails/)
      shell.close()
    })

  it('says what the shell itself completes', async () => {
    assert.deepEqual(await asked(['webhook', 'learn', '/x', '--from', '']), [':files'])
    assert.deepEqual(await asked(['--home', '']), [':dirs'])
    assert.deepEqual(await asked(['oauth', 'exec', 'github', '--', 'g']), [':commands'])
    assert.deepEqual(await asked(['oauth', 'exec', 'github', '--', 'git', '--']), [':commands'])
  })

  it('offers an option once, and no values where it takes none', async () => {
    const options = await asked(['events', '--follow', '--'])
    assert.ok(options.includes('--webhook') && options.includes('--json'))
    assert.ok(!options.includes('--follow'))
    assert.deepEqual(await asked(['oauth', 'login', 'github', '--client-id', '']), [])
    assert.deepEqual(await asked(['oauth', 'login', 'github', '']), [])
    assert.ok((await asked(['help', ''])).includes('oauth'))
    assert.ok((await asked(['help', ''])).includes('webhooks'))
    assert.ok((await asked(['help', 'oauth', ''])).includes('login'))
    assert.ok(!(await asked(['help', 'oauth', ''])).includes('webhooks'))
    assert.ok((await asked(['webhook', 'add', ''])).includes('github'))
    assert.deepEqual(await asked(['webhook', 'add', 'github', '--path', '']), [])
    const again = await asked(['webhook', 'add', 'github', '--filter', 'a=b', '--'])
    assert.ok(again.includes('--filter') && again.includes('--deliver-to'))
    assert.ok((await asked(['agent', 'add', ''])).includes('claude'))
    assert.ok((await asked(['config', 'edit', ''])).includes('env'))
    assert.ok(!(await asked([''])).includes('__complete'))
    assert.deepEqual(await asked([]), await asked(['']))
  })

  it('knows what is configured when no daemon runs, and starts none', async () => {
    const home = await temporaryHome({
      webhooks,
      gateway: 'providers: { work: { issuer: "https://example.com" } }\n',
    })
    assert.deepEqual((await asked(['webhook', 'send', ''], home)).slice(0, 1), ['/webhook/github'])
    assert.deepEqual(await asked(['oauth', 'login', ''], home), [...builtInProviders, 'work'])
    assert.deepEqual(await asked(['oauth', 'token', ''], home), [])
    assert.deepEqual(await asked(['events', 'show', ''], home), [])
    // The home that is named in the line is the one that counts.
    assert.deepEqual(await asked(['events', '--home', home.root, 'show', '']), [])
    assert.equal(await answers(home), false)
  })

  it('gives what it knows alone when the daemon does not answer, and ends', async () => {
    const server = await startContractServer(() => undefined)
    assert.deepEqual(await asked(['events', 'show', ''], server.home), [])
    await server.close()
  })

  it('lets no text from outside be more than one line of the list', async () => {
    const paths = [':files', 'a\nb', 'c\u001b[2J', '', '/fine']
    const home = await temporaryHome({
      webhooks: `webhooks: ${JSON.stringify(paths.map((path) => ({ path })))}`,
    })
    assert.deepEqual(await asked(['webhook', 'send', ''], home), ['/fine'])
  })

  it('prints a script for each shell, and says which there are', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { code, stdout } = await run(['completion', shell])
      assert.equal(code, 0)
      assert.match(stdout, /__complete --/)
    }
    const { code, stderr } = await run(['completion', 'tcsh'])
    assert.equal(code, 2)
    assert.match(stderr, /bash, zsh, fish/)
    assert.equal((await run(['completion', 'bash'], { home: await noHome() })).code, 0)
  })
})

/** A folder that there is not. */
const noHome = async () => {
  const { resolveHome } = await import('../../../shared/home/home.ts')
  return resolveHome(join(await temporaryFolder(), 'none'))
}
