import assert from 'node:assert/strict'
import { lstat, mkdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { parse as parseToml } from 'smol-toml'
import { presets } from '../../../daemon/agents/cli-presets.ts'
import type { CliKind } from '../../../shared/agents/clis.ts'
import type { ToolLevel } from '../../../shared/agents/tools.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { filesIn, temporaryFolder } from '../../support/temporary.ts'

/* test/agent-clis shows with the real programs that nothing starts; these are the files that they get. */

/** In every part of a configuration that may not reach a run. */
const secret = 'secret-canary'

describe('the configuration of one run', () => {
  let person: string
  let folder: string
  let cwd: string

  beforeEach(async () => {
    person = await temporaryFolder()
    folder = await temporaryFolder()
    cwd = await temporaryFolder()
  })

  const plant = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(person, path)), { recursive: true })
    await writeFile(join(person, path), text)
  }

  const prepare = async (
    kind: CliKind,
    env: Record<string, string> = {},
    level: ToolLevel = 'none',
  ) => {
    const made = await presets[kind].prepare?.({
      folder,
      cwd,
      level,
      env: { HOME: person, ...env },
    })
    assert.ok(made)
    for (const name of await filesIn(folder)) {
      const path = join(folder, name)
      // Settings of other programs, such as git, are links to the person's own.
      if ((await lstat(path)).isSymbolicLink()) continue
      assert.ok(!(await readFile(path, 'utf8')).includes(secret), name)
      if (/\.(json|toml)$/.test(name)) assert.equal((await stat(path)).mode & 0o077, 0, name)
    }
    return made
  }

  const json = async (...path: string[]): Promise<Record<string, unknown>> =>
    JSON.parse(await readFile(join(folder, ...path), 'utf8')) as Record<string, unknown>

  it('of Codex has models, providers and profiles, and trusts no project', async () => {
    await plant(
      '.codex/config.toml',
      `model = "m"
model_provider = "p"
model_reasoning_effort = "high"
model_catalog_json = "catalog.json"
profile = "deep"
cli_auth_credentials_store = "keyring"
notify = ["${secret}"]
sandbox_mode = "danger-full-access"
[model_providers.p]
base_url = "https://a.example/v1"
env_key = "P_KEY"
[mcp_servers.x]
command = "x"
env = { TOKEN = "${secret}" }
[hooks]
SessionStart = [{ hooks = [{ type = "command", command = "${secret}" }] }]
[features]
apps = true
[profiles.deep]
model = "deeper"
notify = ["${secret}"]
[projects."${cwd}"]
trust_level = "trusted"
`,
    )
    await plant('.codex/other.config.toml', `model = "o"\nnotify = ["${secret}"]\n`)
    await plant('.codex/hooks.json', secret)
    await plant('.codex/history.jsonl', secret)
    await plant('.codex/catalog.json', '{"models":[]}')
    await plant('.codex/.env', `P_KEY=key\nOPENAI_BASE_URL=https://b.example\nX_TOKEN=${secret}\n`)
    const { variables } = await prepare('codex', { OPENAI_BASE_URL: 'of the entry' })
    const own = join(folder, 'home', '.codex')
    assert.deepEqual(variables, { P_KEY: 'key', CODEX_HOME: own })
    const settings = parseToml(await readFile(join(own, 'config.toml'), 'utf8'))
    const { features } = settings as { features: Record<string, boolean> }
    assert.deepEqual(
      [features['hooks'], features['plugins'], features['apps']],
      [false, false, false],
    )
    assert.deepEqual(JSON.parse(JSON.stringify(settings)), {
      model: 'm',
      model_provider: 'p',
      model_reasoning_effort: 'high',
      model_catalog_json: join(own, 'model_catalog_json'),
      profile: 'deep',
      model_providers: { p: { base_url: 'https://a.example/v1', env_key: 'P_KEY' } },
      profiles: { deep: { model: 'deeper' } },
      cli_auth_credentials_store: 'file',
      features: { ...features },
      projects: { [cwd]: { trust_level: 'untrusted' } },
    })
    assert.equal(await readFile(join(own, 'model_catalog_json'), 'utf8'), '{"models":[]}')
    assert.equal(await readFile(join(own, 'other.config.toml'), 'utf8'), 'model = "o"\n')
    assert.ok(!(await filesIn(own)).some((name) => /hooks|history/.test(name)))
  })

  it('of Codex is made of the folder that the entry names, and trusts no link to a project', async () => {
    await plant('work/config.toml', 'model = "w"\n')
    const link = join(person, 'link')
    await symlink(cwd, link)
    const { variables } = await prepare('codex', { CODEX_HOME: join(person, 'work') })
    assert.equal(variables['CODEX_HOME'], join(folder, 'home', '.codex'))
    const made = await presets.codex.prepare?.({
      folder,
      cwd: link,
      level: 'write',
      env: { HOME: person, CODEX_HOME: join(person, 'work') },
    })
    assert.ok(made)
    const text = await readFile(join(folder, 'home', '.codex', 'config.toml'), 'utf8')
    const { model, projects } = parseToml(text)
    assert.deepEqual([model, Object.keys(projects ?? {})], ['w', [link, cwd]])
  })

  it('of Codex has the instructions of the person and of the project, and follows no link', async () => {
    await plant('.codex/AGENTS.md', 'Be brief.')
    await writeFile(join(cwd, 'AGENTS.md'), 'Use tabs.')
    const read = async () => {
      await prepare('codex')
      return readFile(join(folder, 'home', '.codex', 'AGENTS.md'), 'utf8')
    }
    assert.equal(await read(), 'Be brief.\n\nUse tabs.')
    await plant('key', secret)
    await rm(join(cwd, 'AGENTS.md'))
    await symlink(join(person, 'key'), join(cwd, 'AGENTS.md'))
    assert.equal(await read(), 'Be brief.')
  })

  it('of Claude Code has the model and what the login needs', async () => {
    await plant(
      '.claude/settings.json',
      JSON.stringify({
        model: 'm',
        apiKeyHelper: '/bin/key',
        env: { ANTHROPIC_BASE_URL: 'https://a.example', CLAUDE_CODE_USE_BEDROCK: '1', T: secret },
        hooks: { SessionStart: [{ hooks: [{ type: 'command', command: secret }] }] },
        enabledPlugins: { [secret]: true },
        permissions: { allow: [secret] },
      }),
    )
    const { args } = await prepare('claude')
    assert.deepEqual(args, ['--settings', join(folder, 'settings.json')])
    assert.deepEqual(await json('settings.json'), {
      model: 'm',
      apiKeyHelper: '/bin/key',
      env: { ANTHROPIC_BASE_URL: 'https://a.example', CLAUDE_CODE_USE_BEDROCK: '1' },
    })
  })

  it('of Gemini CLI has the model, the kind of login and the tools of the entry', async () => {
    await plant(
      '.gemini/settings.json',
      `{ // "comment"
        "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } },
        "model": { "name": "m" }, /* x */
        "tools": { "core": ["y"], "exclude": ["z"], "discoveryCommand": "${secret}" },
        "hooks": { "SessionStart": [{ "hooks": [{ "command": "${secret}" }] }] },
        "mcpServers": { "x": { "command": "${secret}" } },
        "context": { "fileName": "AGENTS.md", "includeDirectories": ["${secret}"] },
      }`,
    )
    await plant('.gemini/.env', `GEMINI_API_KEY=key\nX_TOKEN=${secret}\n`)
    await plant('.gemini/extensions/x/gemini-extension.json', secret)
    await plant('.gemini/AGENTS.md', 'Be brief.')
    await writeFile(join(cwd, 'AGENTS.md'), 'Use tabs.')
    const { variables } = await prepare('gemini', {}, 'read')
    assert.equal(variables['GEMINI_API_KEY'], 'key')
    const settings = await json('home', '.gemini', 'settings.json')
    assert.deepEqual(
      [settings['security'], settings['model'], settings['context'], Object.keys(settings).sort()],
      [
        { auth: { selectedType: 'gemini-api-key' } },
        { name: 'm' },
        { fileName: 'AGENTS.md' },
        ['context', 'general', 'model', 'security', 'telemetry', 'tools'],
      ],
    )
    const { core, exclude } = settings['tools'] as { core: string[]; exclude: string[] }
    assert.deepEqual(
      [core.includes('read_file'), core.includes('y'), exclude],
      [true, false, ['z']],
    )
    const instructions = async () => readFile(join(folder, 'home', '.gemini', 'AGENTS.md'), 'utf8')
    assert.equal(await instructions(), 'Be brief.')
    const { cwd: none } = await prepare('gemini')
    assert.deepEqual([none, await instructions()], [join(folder, 'work'), 'Be brief.\n\nUse tabs.'])
    assert.deepEqual(await filesIn(none ?? ''), ['.git/HEAD'])
    assert.equal(await readFile(join(folder, '.env'), 'utf8'), '')
    await prepare('gemini', {}, 'args')
    assert.deepEqual((await json('home', '.gemini', 'settings.json'))['tools'], {
      core: ['y'],
      exclude: ['z'],
    })
  })

  it('of OpenCode has models and providers from all of its files', async () => {
    const settings = (name: string) =>
      JSON.stringify({
        model: `${name}/m`,
        provider: { [name]: { options: { apiKey: '{file:key}', other: '{file:~/key}' } } },
        mcp: { x: { type: 'local', command: [secret] } },
        plugin: [secret],
        permission: { '*': 'allow' },
      })
    await plant('.config/opencode/opencode.json', settings('one'))
    await plant('.config/opencode/plugin/x.js', secret)
    await plant('.config/git/config', '[user]')
    await plant('.opencode/opencode.jsonc', settings('two'))
    await plant('custom.json', settings('three'))
    await plant('more/opencode.json', settings('four'))
    const { variables } = await prepare('opencode', {
      OPENCODE_CONFIG: join(person, 'custom.json'),
      OPENCODE_CONFIG_DIR: join(person, 'more'),
    })
    const { XDG_CONFIG_HOME = '', OPENCODE_CONFIG = '', OPENCODE_CONFIG_DIR = '' } = variables
    const one = await json('home', '.config', 'opencode', 'opencode.json')
    assert.deepEqual(one, {
      model: 'one/m',
      permission: {},
      provider: {
        one: {
          options: {
            apiKey: `{file:${person}/.config/opencode/key}`,
            other: `{file:${person}/key}`,
          },
        },
      },
    })
    assert.equal((await json('home', '.opencode', 'opencode.jsonc'))['model'], 'two/m')
    const model = async (path: string) =>
      (JSON.parse(await readFile(path, 'utf8')) as { model: unknown }).model
    assert.equal(await model(OPENCODE_CONFIG), 'three/m')
    assert.equal(await model(join(OPENCODE_CONFIG_DIR, 'opencode.json')), 'four/m')
    assert.equal(await readFile(join(XDG_CONFIG_HOME, 'git', 'config'), 'utf8'), '[user]')
  })

  it('of OpenCode keeps what the owner forbids, and for args the agents that they can name', async () => {
    const agent = { reviewer: { prompt: 'Review.' } }
    await plant(
      '.config/opencode/opencode.json',
      JSON.stringify({
        agent,
        permission: { edit: 'allow', bash: { '*': 'ask', 'rm *': 'deny' } },
      }),
    )
    await plant('.config/opencode/agent/other.md', 'Look.')
    const permission = { bash: { 'rm *': 'deny' } }
    await prepare('opencode')
    const path = ['home', '.config', 'opencode', 'opencode.json']
    assert.deepEqual(await json(...path), { permission })
    await prepare('opencode', {}, 'args')
    assert.deepEqual(await json(...path), { permission, agent })
    const copied = join(folder, 'home', '.config', 'opencode', 'agent', 'other.md')
    assert.equal(await readFile(copied, 'utf8'), 'Look.')
  })

  it('of OpenCode runs elsewhere without tools, and names plugins that would start', async () => {
    const { cwd: none } = await prepare('opencode')
    assert.equal(none, join(folder, 'work'))
    assert.deepEqual(await filesIn(none ?? ''), ['.git/HEAD'])
    const below = join(cwd, 'below')
    await mkdir(join(cwd, '.git'))
    await mkdir(below)
    const find = async () => {
      const made = await presets.opencode.prepare?.({
        folder,
        cwd: below,
        level: 'write',
        env: { HOME: person },
      })
      assert.deepEqual([made?.cwd, made?.hidden?.[0]], [undefined, join(below, '.opencode')])
      return made?.startsBare
    }
    await writeFile(join(cwd, '.git', 'HEAD'), 'ref: refs/heads/main')
    await writeFile(join(cwd, 'opencode.json'), '{"model":"a/b"}')
    assert.equal(await find(), undefined)
    await writeFile(join(cwd, 'opencode.json'), '{"plugin":["x"]}')
    assert.equal(await find(), join(cwd, 'opencode.json'))
    await mkdir(join(below, '.opencode', 'plugin'), { recursive: true })
    assert.equal(await find(), join(below, '.opencode'))
  })

  it('is made where the person has none', async () => {
    for (const kind of ['claude', 'codex', 'gemini', 'opencode'] as const) await prepare(kind)
  })

  it('is not made of a file that cannot be parsed, which the error names', async () => {
    await plant('.codex/config.toml', `model = "${secret}`)
    const error = await prepare('codex').then(
      () => assert.fail('it was made'),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof DoorwardError)
    assert.match(
      error.message,
      /^codex was not run: its configuration .*config\.toml cannot be parsed/,
    )
    assert.ok(!error.localDetail?.includes(secret))
  })
})
