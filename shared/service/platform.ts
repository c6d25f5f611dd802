import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findUserHome } from '../home/home.ts'
import { toPlainLine } from '../text.ts'
import { packageFolder } from '../version.ts'

/** What a login item depends on besides the home. */
export type ServiceContext = {
  readonly platform: NodeJS.Platform
  readonly env: NodeJS.ProcessEnv
  /** Empty where the user has none. */
  readonly userHome: string
  /** 0 on Windows, where it means nothing. */
  readonly uid: number
  readonly node: string
  /** The folder that doorward is installed in. */
  readonly packageRoot: string
  /** The version of systemd, where the machine was started by it. */
  readonly systemd: number | undefined
}

/** Those of this process. */
export const readServiceContext = async (): Promise<ServiceContext> => ({
  platform: process.platform,
  env: process.env,
  userHome: findUserHome() ?? '',
  uid: process.getuid?.() ?? 0,
  node: stableNodePath(process.env, process.execPath),
  packageRoot: resolve(fileURLToPath(packageFolder)),
  systemd: await systemdVersion(),
})

/** sd_booted(3): the folder is there when the machine was started by systemd. */
const systemdVersion = async (): Promise<number | undefined> => {
  if (process.platform !== 'linux' || !existsSync('/run/systemd/system')) return undefined
  const { code, stdout } = await runTool('systemctl', ['--version'])
  return code === 0 ? Number(/^systemd (\d+)/.exec(stdout)?.[1] ?? 0) : undefined
}

/**
 * The name by which this Node is likely to be found after an upgrade: a folder of PATH that leads to
 * the same file (Homebrew: `/opt/homebrew/bin/node`), else the file itself.
 */
export const stableNodePath = (env: NodeJS.ProcessEnv, execPath: string): string => {
  for (const folder of lastingFolders(env)) {
    const candidate = join(folder, process.platform === 'win32' ? 'node.exe' : 'node')
    try {
      if (realpathSync(candidate) === realpathSync(execPath)) return candidate
    } catch {
      // Not there.
    }
  }
  return execPath
}

/** PATH as a login item keeps it: what a package manager adds for one command is left out. */
export const stableSearchPath = ({ env, node }: Pick<ServiceContext, 'env' | 'node'>): string => {
  const folders = lastingFolders(env)
  const usual = folders.length > 0 ? folders : ['/usr/local/bin', '/usr/bin', '/bin']
  // Agents that are programs of Node look for it on PATH.
  return [...new Set([...usual, dirname(node)])].join(delimiter)
}

const lastingFolders = (env: NodeJS.ProcessEnv): string[] =>
  (env['PATH'] ?? env['Path'] ?? '')
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !isTemporaryFolder(folder))

/** A folder that is likely to be gone tomorrow. */
const isTemporaryFolder = (folder: string): boolean =>
  /[\\/](?:node_modules[\\/]\.bin|node-gyp-bin|_npx|fnm_multishells)(?:[\\/]|$)/.test(folder) ||
  `${folder}${sep}`.startsWith(`${tmpdir()}${sep}`)

/** Why this installation may not be there at the next login, or undefined. */
export const describeTemporaryInstall = ({ packageRoot }: Pick<ServiceContext, 'packageRoot'>) => {
  if (isTemporaryFolder(packageRoot))
    return 'a folder that npm or the system empties from time to time'
  if (existsSync(join(packageRoot, '.git'))) return 'a clone of the repository'
  return undefined
}

type Finished = {
  /** 127 when it cannot be run, 124 when it took too long. */
  readonly code: number
  readonly stdout: string
  /** One line of it, to be shown. */
  readonly said: string
}

/** Runs a program of the system to its end, at most `timeoutMs`; never throws. */
export const runTool = async (
  program: string,
  args: readonly string[],
  timeoutMs = 10_000,
): Promise<Finished> =>
  new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
      killSignal: 'SIGKILL',
      windowsHide: true,
    })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
    child.once('error', () => resolve({ code: 127, stdout, said: `${program} cannot be run` }))
    child.once('close', (code) =>
      resolve({ code: code ?? 124, stdout, said: toPlainLine(stderr).slice(0, 300) }),
    )
  })
