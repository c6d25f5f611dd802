import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { promisify } from 'node:util'
import { hasProgram, serverCore } from '../machine.ts'
import { endWithUs } from './end-with-us.ts'

const run = promisify(execFile)

export type OidcAgent = {
  /** For `oidc-token`, to find it. */
  readonly env: NodeJS.ProcessEnv
  readonly stop: () => Promise<void>
}

/**
 * Starts an oidc-agent in a temporary folder, logged in to two accounts at a provider of the bench,
 * `cached` and `hanging`, by a refresh token and so without a browser; nothing is saved. Undefined where
 * it is not installed, or cannot log in, which is said.
 */
export const startOidcAgent = async (provider: string): Promise<OidcAgent | undefined> => {
  if (!(await hasProgram('oidc-agent'))) return undefined
  const folder = await mkdtemp(join(tmpdir(), 'doorward-bench-'))
  const socket = join(folder, 'agent')
  const env = { ...process.env, HOME: folder, OIDC_CONFIG_DIR: folder, OIDC_SOCK: socket }
  const argv = ['oidc-agent', '--console', '--no-autoreauthenticate']
  const agent = spawn('taskset', ['--cpu-list', serverCore, ...argv, '--socket-path', socket], {
    env,
    stdio: 'ignore',
  })
  endWithUs(agent)
  const ended = once(agent, 'exit')
  const stop = async (): Promise<void> => {
    agent.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await untilListening(socket)
    const password = join(folder, 'password')
    await writeFile(password, 'x\n', { mode: 0o600 })
    for (const account of ['cached', 'hanging'])
      await run('oidc-gen', [...loginTo(`${provider}/login/${account}`, password), account], {
        env,
        timeout: 10_000,
      })
  } catch (error) {
    await stop()
    // Another version of it may log in otherwise; the rest is measured all the same.
    console.error(`oidc-agent is left out: no login there: ${(error as Error).message}`)
    return undefined
  }
  return { env, stop }
}

/** Its socket is there before it answers. What it says of itself comes late where no terminal reads it. */
const untilListening = async (socket: string): Promise<void> => {
  const end = performance.now() + 10_000
  while (performance.now() < end) {
    const connection = connect(socket)
    const isThere = await once(connection, 'connect').then(
      () => true,
      () => false,
    )
    connection.destroy()
    if (isThere) return
    await wait(5)
  }
  throw new Error('oidc-agent does not answer')
}

const loginTo = (issuer: string, password: string): string[] => [
  '--manual',
  '--issuer',
  issuer,
  '--client-id=id',
  '--client-secret=',
  '--rt=y',
  '--scope=openid offline_access',
  '--redirect-uri=http://localhost:4242',
  '--no-save',
  '--prompt=none',
  '--confirm-default',
  '--pw-file',
  password,
]
