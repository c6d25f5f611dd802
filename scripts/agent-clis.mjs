// Installs the agent programs that test/agent-clis runs (Linux on x64), in a folder of their own (0.9 GB):
// they are not dependencies of doorward. Install scripts are off. Claude Code and OpenCode come as the packages
// of this system: those around them choose one of many, and that of Claude Code asks for Node 22.
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { root, run } from './setup.mjs'

const folder = join(root, 'test', 'agent-clis')
const packages = join(folder, 'node_modules')
const lock = join(folder, 'package-lock.json')
/** A copy of the lock file, written after a complete install. */
const stamp = join(packages, '.installed')

/** True when every program is installed in the version of the lock file. */
export const hasAgentClis = () =>
  existsSync(stamp) && readFileSync(stamp, 'utf8') === readFileSync(lock, 'utf8')

/** Installs what is missing. Exits with npm's exit code when that fails. */
export const installAgentClis = () => {
  if (hasAgentClis()) return
  console.error('installing the agent programs for test/agent-clis (only this once) ...')
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: folder,
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
  })
  const links = {
    claude: ['@anthropic-ai', 'claude-code-linux-x64', 'claude'],
    opencode: ['opencode-linux-x64-baseline', 'bin', 'opencode'],
  }
  for (const [name, program] of Object.entries(links)) {
    const link = join(packages, '.bin', name)
    rmSync(link, { force: true })
    symlinkSync(join('..', ...program), link)
  }
  writeFileSync(stamp, readFileSync(lock))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) installAgentClis()
