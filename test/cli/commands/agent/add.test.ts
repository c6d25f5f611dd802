import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { initHome } from '../../../../shared/home/init-home.ts'
import { type Home, resolveHome } from '../../../../shared/home/home.ts'
import { readYaml } from '../../../../shared/config/yaml.ts'
import { startDaemon } from '../../../support/daemon/daemon.ts'
import { temporaryFolder, temporaryHome } from '../../../support/temporary.ts'
import { run } from '../../support/cli.ts'

const agentsOf = async (home: Home) => {
  const { value } = readYaml('', await readFile(join(home.config, 'agents.yaml'), 'utf8'))
  return (value as { agents: Record<string, unknown> }).agents
}
const block = 'agents:\n  echo:\n    kind: echo # mine\n'

describe('cli: agent add', () => {
  it('adds to the sample without touching a byte of it', async () => {
    const home = resolveHome(await temporaryFolder())
    await initHome(home)
    const path = join(home.config, 'agents.yaml')
    const before = await readFile(path, 'utf8')
    const { code, stdout, stderr } = await run(['agent', 'add', 'claude', 'reviewer'], {
      home,
      env: { PATH: '/nowhere' },
    })
    assert.equal(code, 0, stderr)
    assert.match(stdout, /agents\.yaml:\d+\nagent +reviewer \(claude\)/)
    assert.match(stderr, /claude is not on PATH; install it with: npm install/)
    assert.match(stderr, /doorward webhook add github-review --agent reviewer/)
    assert.ok((await readFile(path, 'utf8')).startsWith(before))
    assert.deepEqual((await agentsOf(home))['reviewer'], { kind: 'claude' })
  })

  const added: readonly (readonly [readonly string[], string, object])[] = [
    [['codex', '--model', 'o4'], 'codex', { kind: 'codex', args: ['-m', 'o4'] }],
    [
      ['claude', 'r', '--model', 'sonnet', '--cwd', '~/a b', '--', '--tools', 'Read,Grep'],
      'r',
      { kind: 'claude', args: ['--model', 'sonnet', '--tools', 'Read,Grep'], cwd: '~/a b' },
    ],
    [
      ['openai', 'local', '--base-url', 'http://127.0.0.1:1/v1', '--model', '12'],
      'local',
      { kind: 'openai', model: '12', base_url: 'http://127.0.0.1:1/v1' },
    ],
    [
      ['http', '--url', 'https://a.example.com/', '--answer-path', 'a.0', '--timeout', '20m'],
      'http',
      { kind: 'http', url: 'https://a.example.com/', answer_path: 'a.0', timeout: '20m' },
    ],
    [
      ['command', '--env', 'A=env:B', '--env', 'T=oauth:github', '--', 'sh', '-c', 'true'],
      'command',
      { kind: 'command', command: ['sh', '-c', 'true'], env: { A: 'env:B', T: 'oauth:github' } },
    ],
  ]
  for (const [args, name, entry] of added)
    it(`takes ${args.join(' ')}`, async () => {
      const home = await temporaryHome({ agents: block })
      const { code, stderr } = await run(['agent', 'add', ...args], { home })
      assert.equal(code, 0, stderr)
      assert.deepEqual(await agentsOf(home), { echo: { kind: 'echo' }, [name]: entry })
    })

  it('prints the entry alone with --print, and its value and text with --json', async () => {
    const home = await temporaryHome()
    const args = ['agent', 'add', 'claude', 'reviewer', '--print']
    const { stdout } = await run(args, { home })
    const { value } = readYaml('', stdout)
    const asJson = await run([...args, '--json'], { home })
    const { name, entry, text } = JSON.parse(asJson.stdout) as Record<string, unknown>
    assert.deepEqual([{ [String(name)]: entry }, `${String(text)}\n`], [value, stdout])
  })

  it('names a next command that works beside the webhooks there are', async () => {
    const entry = (path: string) =>
      `  - { path: ${path}, agent: echo, prompt_template: x, secret_env: A }\n`
    const home = await temporaryHome({
      agents: block,
      webhooks: `webhooks:\n${entry('/github')}${entry('/webhook/github-2')}`,
    })
    const { stderr } = await run(['agent', 'add', 'command', 'words', '--', 'wc'], { home })
    const [, next] = /^next:\n {2}doorward (.*)$/m.exec(stderr) ?? []
    assert.equal(next, 'webhook add github --agent words --path /webhook/github-3')
    const { code } = await run(next.split(' '), { home })
    assert.equal(code, 0)
  })

  it('lets a daemon that runs take it, and names the variables that are unset', async () => {
    const daemon = await startDaemon({ agents: block })
    const { home } = daemon
    const args = ['openai', '--base-url', 'https://a.example.com/v1', '--model', 'm']
    const { stdout, stderr } = await run(
      ['agent', 'add', ...args, '--api-key-env', 'THE_KEY', '--json'],
      { home },
    )
    const { reloaded, unset } = JSON.parse(stdout) as { reloaded: boolean; unset: string[] }
    assert.deepEqual([reloaded, unset, stderr], [true, ['THE_KEY'], ''])
    await daemon.stop()
  })

  const refused: readonly (readonly [readonly string[], RegExp])[] = [
    [['clude'], /no kind of agent "clude"\nhint: did you mean "claude"\?/],
    [['echo'], /an agent echo already exists at .*agents\.yaml:2\nhint: doorward agent add/],
    [['command'], /needs -- and the command\nhint: doorward agent add command/],
    [['openai', '--model', 'm'], /needs --base-url/],
    [
      ['openai', '--model', 'm', '--base-url', 'http://a.example.com'],
      /base_url: not an https URL/,
    ],
    [['claude', '--url', 'https://a.example.com'], /takes no --url/],
    [['claude', 'a b'], /^doorward: "a b" is not an agent name \(letters, digits, /],
    [['claude', '--timeout', 'soon'], /timeout: not a duration/],
    [['claude', '--env', 'SECRET'], /--env SECRET is not NAME=value/],
    [['claude', '--', '--output-format', 'text'], /must be left out/],
    [['command', 'words', 'wc', '-w'], /unknown option|put -- before/],
    [['claude', '__proto__'], /./],
  ]
  for (const [args, message] of refused)
    it(`writes nothing for ${args.join(' ')}`, async () => {
      const home = await temporaryHome({ agents: block })
      const { code, stdout, stderr } = await run(['agent', 'add', ...args], { home })
      assert.deepEqual([code, stdout], [2, ''], stderr)
      assert.match(stderr, message)
      assert.equal(await readFile(join(home.config, 'agents.yaml'), 'utf8'), block)
    })
})
