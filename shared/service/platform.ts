import { spawn } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findUserHome } from '../home/home.ts'
import { toPlainLine } from '../text.ts'
import { packageFolder } from '../version.ts'

/** The system that login items are for. */
export type ServiceContext = {
  readonly platform: NodeJS.Platform
  readonly env: NodeJS.ProcessEnv
  /** Empty if the user has none. */
  readonly userHome: string
  /** 0 on Windows, which has none. */
  readonly uid: number
  readonly node: string
  /** The folder of the installed package. */
  readonly packageRoot: string
  /** The version of systemd, if it started the machine. */
  readonly systemd: number | undefined
}

export const readServiceContext = async (): Promise<ServiceContext> => ({
  platform: process.platform,
  env: process.env,
  userHome: findUserHome() ?? '',
  uid: process.getuid?.() ?? 0,
  node: stableNodePath(process.env, process.execPath),
  packageRoot: resolve(fileURLToPath(packageFolder)),
  systemd: await systemdVersion(),
})

/** The folder exists when systemd started the machine (sd_booted(3)). */
const systemdVersion = async (): Promise<number | undefined> => {
  if (process.platform !== 'linux' || !existsSync('/run/systemd/system')) return undefined
  const { code, stdout } = await runTool('systemctl', ['--version'])
  return code === 0 ? Number(/^systemd (\d+)/.exec(stdout)?.[1] ?? 0) : undefined
}

/**
 * The path of this Node that is likely to survive an upgrade: a link on PATH to the same file (Homebrew:
 * `/opt/homebrew/bin/node`), else the file itself.
 */
export const stableNodePath = (env: NodeJS.ProcessEnv, execPath: string): string => {
  for (const folder of stableFolders(env)) {
    const candidate = join(folder, process.platform === 'win32' ? 'node.exe' : 'node')
    try {
      if (realpathSync(candidate) === realpathSync(execPath)) return candidate
    } catch {
      // Does not exist.
    }
  }
  return execPath
}

/** PATH for a login item, without the folders that a package manager adds for one command. */
export const stableSearchPath = ({ env, node }: Pick<ServiceContext, 'env' | 'node'>): string => {
  const folders = stableFolders(env)
  const known = folders.length > 0 ? folders : ['/usr/local/bin', '/usr/bin', '/bin']
  // Agents written for Node look for it on PATH.
  return [...new Set([...known, dirname(node)])].join(delimiter)
}

const stableFolders = (env: NodeJS.ProcessEnv): string[] =>
  (env['PATH'] ?? env['Path'] ?? '')
    .split(delimiter)
    .filter((folder) => isAbsolute(folder) && !isTemporaryFolder(folder))

/** True for a folder that may be removed at any time. */
const isTemporaryFolder = (folder: string): boolean =>
  /[\\/](?:node_modules[\\/]\.bin|node-gyp-bin|_npx|fnm_multishells)(?:[\\/]|$)/.test(folder) ||
  `${folder}${sep}`.startsWith(`${tmpdir()}${sep}`)

/** Why this installation may be missing at the next login, or undefined. */
export const describeTemporaryInstall = ({ packageRoot }: Pick<ServiceContext, 'packageRoot'>) => {
  if (isTemporaryFolder(packageRoot)) return 'a temporary folder of npm or the system'
  if (existsSync(join(packageRoot, '.git'))) return 'a clone of the repository'
  return undefined
}

type ToolResult = {
  /** 127 when it cannot be run, 124 after the timeout. */
  readonly code: number
  readonly stdout: string
  /** Standard error on one line, for messages. */
  readonly errorText: string
}

/** Runs a program of the system for at most `timeoutMs`. Never throws. */
export const runTool = async (
  program: string,
  args: readonly string[],
  timeoutMs = 10_000,
): Promise<ToolResult> =>
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
    child.once('error', () => resolve({ code: 127, stdout, errorText: `${program} cannot be run` }))
    child.once('close', (code) =>
      resolve({ code: code ?? 124, stdout, errorText: toPlainLine(stderr).slice(0, 300) }),
    )
  })
