import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, realpath, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { EventDetail } from '../../shared/api/api.ts'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import {
  cleanEnvironment,
  type RunningDaemon,
  startDaemon,
  untilFinished,
} from '../support/daemon/daemon.ts'
import { send } from '../support/servers/http.ts'
import {
  type ModelRequest,
  type ModelServer,
  startModelServer,
} from '../support/servers/model-server.ts'
import { temporaryFolder } from '../support/temporary.ts'

/*
 * Servers, hooks, notify programs, plugins and tools in the owner's configuration and in that of a project. Each
 * asks the server of the model for a path with its name when it starts.
 */

const programs = fileURLToPath(
  new URL('../../../test/agent-clis/node_modules/.bin', import.meta.url),
)

/** In the entries of the owner's servers. */
const secret = 'secret-of-a-server'

const kinds = ['claude', 'codex', 'gemini', 'opencode'] as const
type Kind = (typeof kinds)[number]

/** A command that is noticed when it starts, in a sandbox too. */
const toCommand = (origin: string, name: string): readonly string[] => {
  const { hostname, port } = new URL(origin)
  const request = `GET /started/${name} HTTP/1.0\\r\\n\\r\\n`
  return [
    'bash',
    '-c',
    `exec 3<>/dev/tcp/${hostname}/${port}; printf '${request}' >&3; cat <&3 >/dev/null; echo '[]'`,
  ]
}

/** The configuration of a program, by path: of the owner, or of a project. */
type Plant = (origin: string, project: string) => Readonly<Record<string, string>>

const toServer = (origin: string, name: string) => {
  const [command, ...args] = toCommand(origin, name)
  return { command, args, env: { TOKEN: secret } }
}
const toShell = (origin: string, name: string): string => {
  const [bash, flag, script = ''] = toCommand(origin, name)
  return `${bash} ${flag} "${script.replaceAll('"', '\\"')}"`
}
const toModule = (origin: string, name: string): string =>
  `await fetch('${origin}/started/${name}').catch(() => undefined)\nexport const Plugin = async () => ({})\nexport default Plugin\n`

const claudeHooks = (origin: string, name: string) => ({
  hooks: {
    SessionStart: [{ hooks: [{ type: 'command', command: toShell(origin, name) }] }],
    UserPromptSubmit: [{ hooks: [{ type: 'command', command: toShell(origin, name) }] }],
  },
})
const codexHooks = (origin: string, name: string): string =>
  JSON.stringify({
    hooks: {
      SessionStart: [{ hooks: [{ type: 'command', command: toShell(origin, name) }] }],
      UserPromptSubmit: [{ hooks: [{ type: 'command', command: toShell(origin, name) }] }],
    },
  })
const codexServers = (origin: string, name: string): string => {
  const [command, ...args] = toCommand(origin, name)
  return `[mcp_servers.${name}]
command = ${JSON.stringify(command)}
args = ${JSON.stringify(args)}
env = { TOKEN = "${secret}" }
startup_timeout_sec = 5
`
}
const geminiSettings = (origin: string, whose: string) => ({
  mcpServers: { [`gemini-${whose}-server`]: toServer(origin, `gemini-${whose}-server`) },
  hooks: {
    SessionStart: [
      { hooks: [{ type: 'command', name: 'x', command: toShell(origin, `gemini-${whose}-hook`) }] },
    ],
    BeforeAgent: [
      { hooks: [{ type: 'command', name: 'y', command: toShell(origin, `gemini-${whose}-hook`) }] },
    ],
  },
  tools: { discoveryCommand: toShell(origin, `gemini-${whose}-discovery`) },
})

/** OpenCode installs its package for plugins where it is missing, and no test has a network. */
const withoutInstall = (folder: string) => ({
  [`${folder}/node_modules/x`]: '',
  [`${folder}/package-lock.json`]: JSON.stringify({
    packages: { '': { dependencies: { '@opencode-ai/plugin': '*' } } },
  }),
})

const ofOwner: Plant = (origin, project) => ({
  '.claude.json': JSON.stringify({
    hasCompletedOnboarding: true,
    mcpServers: { owner: toServer(origin, 'claude-owner-server') },
  }),
  '.claude/settings.json': JSON.stringify({
    model: 'model-of-the-owner',
    env: { ANTHROPIC_BASE_URL: origin, TOKEN: secret },
    ...claudeHooks(origin, 'claude-owner-hook'),
  }),
  '.codex/config.toml': `model = "model-of-the-owner"
model_provider = "mine"
notify = ${JSON.stringify(toCommand(origin, 'codex-owner-notify'))}
[model_providers.mine]
name = "mine"
base_url = "${origin}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
[projects.${JSON.stringify(project)}]
trust_level = "trusted"
${codexServers(origin, 'codex-owner-server')}`,
  '.codex/hooks.json': codexHooks(origin, 'codex-owner-hook'),
  '.gemini/settings.json': JSON.stringify({
    security: { auth: { selectedType: 'gemini-api-key' } },
    model: { name: 'gemini-2.5-flash-lite' },
    ...geminiSettings(origin, 'owner'),
  }),
  '.gemini/.env': `GEMINI_API_KEY=key\nGOOGLE_GEMINI_BASE_URL=${origin}\nTOKEN=${secret}\n`,
  '.gemini/extensions/x/gemini-extension.json': JSON.stringify({
    name: 'x',
    version: '1.0.0',
    mcpServers: { extension: toServer(origin, 'gemini-owner-extension') },
  }),
  '.config/opencode/opencode.json': JSON.stringify({
    model: 'mine/model-of-the-owner',
    provider: {
      mine: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${origin}/v1`, apiKey: 'key' },
        models: { 'model-of-the-owner': { name: 'mine' } },
      },
    },
    mcp: {
      owner: {
        type: 'local',
        command: toCommand(origin, 'opencode-owner-server'),
        environment: { TOKEN: secret },
      },
    },
  }),
  '.config/opencode/plugin/owner.js': toModule(origin, 'opencode-owner-plugin'),
  '.config/opencode/tool/owner.js': toModule(origin, 'opencode-owner-tool'),
  '.opencode/plugin/home.js': toModule(origin, 'opencode-home-plugin'),
  ...withoutInstall('.config/opencode'),
  ...withoutInstall('.opencode'),
})

const ofProject: Plant = (origin) => ({
  '.mcp.json': JSON.stringify({
    mcpServers: { project: toServer(origin, 'claude-project-server') },
  }),
  '.claude/settings.json': JSON.stringify({
    enableAllProjectMcpServers: true,
    ...claudeHooks(origin, 'claude-project-hook'),
  }),
  '.codex/config.toml': codexServers(origin, 'codex-project-server'),
  '.codex/hooks.json': codexHooks(origin, 'codex-project-hook'),
  '.gemini/settings.json': JSON.stringify(geminiSettings(origin, 'project')),
  'opencode.json': JSON.stringify({
    mcp: { project: { type: 'local', command: toCommand(origin, 'opencode-project-server') } },
  }),
  '.opencode/plugin/project.js': toModule(origin, 'opencode-project-plugin'),
  '.opencode/tool/project.js': toModule(origin, 'opencode-project-tool'),
  ...withoutInstall('.opencode'),
  'AGENTS.md': 'instructions-of-the-project',
})

/** The arguments with which a person runs it in a project that they trust. */
const byHand: Readonly<Record<Kind, readonly string[]>> = {
  claude: ['-p', '--output-format', 'json'],
  codex: ['exec', '--json', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', '-'],
  gemini: ['-o', 'json'],
  opencode: ['run', '--format', 'json'],
}

/** Of the owner's configuration. */
const models: Readonly<Record<Kind, string>> = {
  claude: 'model-of-the-owner',
  codex: 'model-of-the-owner',
  gemini: 'gemini-2.5-flash-lite',
  opencode: 'model-of-the-owner',
}

const keys: Readonly<Record<Kind, string>> = {
  claude: 'ANTHROPIC_API_KEY: "env:KEY"',
  codex: 'FAKE_KEY: "env:KEY"',
  gemini: '',
  opencode: 'OPENCODE_DISABLE_MODELS_FETCH: "1"',
}

/** Two agents of each kind in the project: without tools and sandbox, and with both. */
const agentsFile = (project: string): string =>
  `agents:\n${kinds
    .flatMap((kind) => [
      `  none-${kind}: { kind: ${kind}, cwd: "${project}", sandbox: off, env: { ${keys[kind]} } }`,
      `  write-${kind}: { kind: ${kind}, cwd: "${project}", tools: write, sandbox: required, env: { ${keys[kind]} } }`,
    ])
    .join('\n')}
  bare-opencode: { kind: opencode, cwd: "${project}", tools: read, sandbox: off }\n`

/** Agents whose entries name a server. */
const givenAgents = (origin: string, project: string): string => {
  const servers = { mcpServers: { given: toServer(origin, 'given-claude') } }
  const [command, ...rest] = toCommand(origin, 'given-codex')
  const args = {
    claude: ['--mcp-config', JSON.stringify(servers)],
    codex: [
      `mcp_servers.given.command=${JSON.stringify(command)}`,
      `mcp_servers.given.args=${JSON.stringify(rest)}`,
    ].flatMap((setting) => ['-c', setting]),
  }
  const entry = (kind: 'claude' | 'codex') =>
    `  given-${kind}: { kind: ${kind}, cwd: "${project}", args: ${JSON.stringify(args[kind])}, env: { ${keys[kind]} } }\n`
  return entry('claude') + entry('codex')
}

const webhooksFile = `webhooks:\n${kinds
  .flatMap((kind) => [`none-${kind}`, `write-${kind}`])
  .concat('given-claude', 'given-codex', 'bare-opencode')
  .map((name) => `  - { path: /${name}, agent: ${name}, prompt_template: "Please say ${name}." }`)
  .join('\n')}\n`

describe('configuration that starts programs', function () {
  this.timeout(180_000)
  let model: ModelServer
  let daemon: RunningDaemon
  let home: string
  let project: string
  let variables: Record<string, string>

  const plant = async (folder: string, files: Readonly<Record<string, string>>) => {
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true })
      await writeFile(join(folder, path), text)
    }
  }

  const started = (): string[] => [
    ...new Set(
      model.requests.flatMap(({ path }) =>
        path.startsWith('/started/') ? path.slice('/started/'.length) : [],
      ),
    ),
  ]

  before(async () => {
    model = await startModelServer()
    home = await temporaryFolder()
    project = await realpath(await temporaryFolder())
    await plant(home, ofOwner(model.origin, project))
    await plant(project, ofProject(model.origin, project))
    variables = {
      HOME: home,
      PATH: [programs, process.env['PATH']].join(delimiter),
      FAKE_KEY: 'key',
      ANTHROPIC_API_KEY: 'key',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
    }
    daemon = await startDaemon({
      agents: agentsFile(project) + givenAgents(model.origin, project),
      webhooks: webhooksFile,
      gateway: 'oauth: { callback_port: 0 }\nqueue: { concurrency: 8 }\n',
      env: 'KEY=key\n',
      variables: { HOME: home, PATH: variables['PATH'] ?? '' },
    })
  })
  after(async () => {
    await daemon?.stop()
    model?.close()
  })

  const ask = async (name: string): Promise<EventDetail> => {
    const reply = await send(`${daemon.url}/${name}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    })
    return untilFinished(daemon, String(reply.json()['id']))
  }

  /** The model that a request names. */
  const modelOf = ({ path, body }: ModelRequest): string | undefined =>
    /models\/([^:]+)/.exec(path)?.[1] ?? (JSON.parse(body) as { model?: string }).model

  it('starts nothing of it in a run, which has the model and provider of the owner', async function () {
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
    model.behave({ kind: 'answers', text: 'an answer' })
    const names = kinds.flatMap((kind) => [`none-${kind}`, `write-${kind}`])
    for (const { state, result, detail } of await Promise.all(names.map(ask)))
      assert.deepEqual([state, result], ['done', 'an answer'], detail)
    assert.deepEqual(started(), [])
    for (const name of names) {
      const requests = model.requests.filter(({ body }) => body.includes(`say ${name}.`))
      assert.deepEqual(
        [...new Set(requests.map(modelOf))],
        [models[name.split('-')[1] as Kind]],
        name,
      )
      for (const { body } of requests) assert.ok(!body.includes(secret), name)
      // Instructions start nothing.
      if (/codex|opencode/.test(name))
        assert.ok(
          requests.some(({ body }) => body.includes('instructions-of-the-project')),
          name,
        )
    }
  })

  it('starts a server that args name, and no other', async () => {
    model.behave({ kind: 'answers', text: 'an answer' })
    for (const { state, detail } of await Promise.all(['given-claude', 'given-codex'].map(ask)))
      assert.equal(state, 'done', detail)
    assert.deepEqual(started().sort(), ['given-claude', 'given-codex'])
  })

  it('is why OpenCode, which would load the plugins, is not run with tools and no sandbox', async () => {
    const { state, code, detail } = await ask('bare-opencode')
    assert.deepEqual([state, code], ['failed', 'agent-failed'])
    assert.match(detail ?? '', /it would load \S+\.opencode \(with sandbox: required/)
  })

  it('shows no secret of a server in the sandbox', async function () {
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
    const cmd = `env; cat "$CODEX_HOME"/*.toml; cat ${home}/.codex/* ${home}/.*/*.json ${home}/.config/*/*`
    model.behave({ kind: 'asks-for-tool', name: 'exec_command', input: { cmd } })
    const { state, result = '', detail } = await ask('write-codex')
    assert.equal(state, 'done', detail)
    assert.ok(result.includes('model-of-the-owner') && !result.includes(secret), result)
  })

  it('is what starts them by hand', async () => {
    model.behave({ kind: 'answers', text: 'an answer' })
    const runs = kinds.map(async (kind) => {
      const child = spawn(join(programs, kind), byHand[kind], {
        cwd: project,
        env: cleanEnvironment({ ...variables, GEMINI_CLI_TRUST_WORKSPACE: 'true' }),
        stdio: ['pipe', 'ignore', 'ignore'],
        timeout: 60_000,
      })
      child.stdin?.end('Say it.')
      await once(child, 'close')
    })
    await Promise.all(runs)
    assert.deepEqual(
      started()
        .filter((name) => !name.startsWith('given-'))
        .sort(),
      planted,
    )
  })
})

/** What starts by hand. */
const planted = [
  'claude-owner-hook',
  'claude-owner-server',
  'claude-project-hook',
  'claude-project-server',
  'codex-owner-hook',
  'codex-owner-notify',
  'codex-owner-server',
  'codex-project-hook',
  'codex-project-server',
  'gemini-owner-extension',
  'gemini-owner-hook',
  'gemini-owner-server',
  'gemini-project-discovery',
  'gemini-project-hook',
  'gemini-project-server',
  'opencode-home-plugin',
  'opencode-owner-plugin',
  'opencode-owner-server',
  'opencode-owner-tool',
  'opencode-project-plugin',
  'opencode-project-server',
  'opencode-project-tool',
]
