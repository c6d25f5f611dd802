// Runs all the tests on the build. Those in test/desktop need programs that npm does not bring (a
// browser, a virtual display): in CI they always run, and fail where something is missing; on a
// machine without them they are left out here, and that is said.
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { root, setUp } from './setup.mjs'

setUp()

const programs = ['chromium', 'Xvfb', 'dbus-daemon', 'notify-send']
const isThere = (program) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))
const missing = programs.filter((program) => !isThere(program))
const leaveOut = missing.length > 0 && !process.env.CI
if (leaveOut)
  console.error(
    `NOT RUN: test/desktop (${missing.join(', ')} not installed). .ci/run installs what they need and runs all.`,
  )

const mocha = join(root, 'node_modules', 'mocha', 'bin', 'mocha.js')
const named = process.argv.slice(2)
const args = [
  mocha,
  ...(leaveOut ? ['--ignore', 'dist/test/desktop/**'] : []),
  // Some tests are of one system only; on Linux in CI there is no reason to leave one out.
  ...(process.platform === 'linux' && process.env.CI ? ['--forbid-pending'] : []),
  ...named,
  // Files named after `npm test --` run alone.
  ...(named.some((name) => name.endsWith('.js')) ? [] : ['dist/test/**/*.test.js']),
]
const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
process.exitCode = status ?? 1
