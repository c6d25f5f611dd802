// Installs the agent programs that test/agent-clis runs (Linux on x64), in a folder of their own (0.9 GB):
// they are not dependencies of doorward. Install scripts are off; the two steps that are needed are here.
// Claude Code stays at 2.1.197: the package of later versions asks for Node 22.
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
  run(process.execPath, ['install.cjs'], {
    cwd: join(packages, '@anthropic-ai', 'claude-code'),
    stdio: ['ignore', 2, 2],
  })
  // opencode-ai is a wrapper for twelve packages like this one.
  const opencode = join(packages, '.bin', 'opencode')
  rmSync(opencode, { force: true })
  symlinkSync(join('..', 'opencode-linux-x64-baseline', 'bin', 'opencode'), opencode)
  writeFileSync(stamp, readFileSync(lock))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) installAgentClis()
