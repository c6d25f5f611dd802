// Has V8's code of the programs kept beside them (`shared/load-compiled.ts`): runs the daemon once, in a home of
// its own, with a delivery and a token, and the command line that asks for it.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Code is taken by the Node that made it. */
const maker = `${process.version} ${process.arch}`

/** Does it for the programs in dist/bin of the repository at `root`, unless this Node has done it already. */
export const compileAhead = async (root) => {
  const stamp = join(root, 'dist', '.compiled')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === maker) return
  try {
    await compile(root)
  } catch (error) {
    // What is compiled at each start works as well: not tried again before the next build.
    console.error(`doorward starts more slowly, as it cannot be compiled ahead: ${error.message}`)
  }
  writeFileSync(stamp, maker)
}

const compile = async (root) => {
  const folder = await mkdtemp(join(tmpdir(), 'doorward-compile-'))
  const home = join(folder, 'home')
  const program = join(root, 'dist', 'bin', 'doorward.cjs')
  const { NODE_OPTIONS: _, ...outer } = process.env
  const env = { ...outer, HOME: folder, DOORWARD_HOME: home, DOORWARD_PORT: '0' }
  const keeper = join(root, 'scripts', 'keep-compiled.cjs')
  const keeping = { ...env, NODE_OPTIONS: `--require ${JSON.stringify(keeper)}` }
  const doorward = async (environment, ...args) =>
    run(process.execPath, [program, ...args], { env: environment, timeout: 60_000 })
  try {
    await writeHome(home)
    await doorward(keeping, 'daemon', 'start')
    try {
      const sample = 'github:pull_request.opened'
      await doorward(env, 'webhook', 'send', '/webhook/github', '--sample', sample, '--wait')
      await doorward(env, 'status')
      await doorward(keeping, 'oauth', 'token', 'example')
    } finally {
      // It leaves its code at its end, which this waits for.
      await doorward(env, 'daemon', 'stop')
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** A webhook whose agent is part of the daemon, and a token that is one for nobody. */
const writeHome = async (home) => {
  const write = async (path, text) => {
    await mkdir(dirname(join(home, path)), { recursive: true, mode: 0o700 })
    await writeFile(join(home, path), text, { mode: 0o600 })
  }
  const endpoints =
    '{ authorization_endpoint: "http://127.0.0.1/a", token_endpoint: "http://127.0.0.1/t" }'
  await write('.env', `COMPILE_SECRET=${randomBytes(24).toString('hex')}\n`)
  await write('config/agents.yaml', 'agents:\n  echo: { kind: echo }\n')
  await write('config/gateway.yaml', `providers:\n  example: ${endpoints}\n`)
  await write(
    'config/webhooks.yaml',
    `webhooks:
  - path: /webhook/github
    agent: echo
    signature_scheme: github
    secret_env: COMPILE_SECRET
    prompt_template: "{{event.pull_request.title}}"
    filter: { action: opened }
`,
  )
  const now = Date.now()
  const token = {
    version: 1,
    provider: 'example',
    account: null,
    scopes: [],
    tokenType: 'Bearer',
    accessToken: 'none',
    expiresAt: new Date(now + 3_600_000).toISOString(),
    obtainedAt: new Date(now).toISOString(),
    clientId: 'none',
  }
  await write('tokens/example.json', JSON.stringify(token))
}
