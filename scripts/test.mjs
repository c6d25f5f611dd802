// Runs all the tests on the build. Those in test/desktop need programs that npm does not bring (a
// browser, a virtual display), those in test/agent-clis the agents that people have, those in
// test/security/other-user another user: in CI they always run, and fail where something is missing; on a
// machine without them they are left out here, and that is said.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { hasAgentClis, installAgentClis } from './agent-clis.mjs'
import { root, setUp } from './setup.mjs'

await setUp()

const mocha = join(root, 'node_modules', 'mocha', 'bin', 'mocha.js')

/** How many tests the files of a folder hold, by mocha's own count; none of them runs. */
const countTests = (folder) => {
  const files = `dist/test/${folder}/**/*.test.js`
  const args = [mocha, '--dry-run', '--reporter', 'json', files]
  const { stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
  return JSON.parse(stdout).stats.tests
}

const programs = [
  'chromium',
  'Xvfb',
  'dbus-daemon',
  'notify-send',
  'systemctl',
  'desktop-file-validate',
]
const isThere = (program) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))
const missing = programs.filter((program) => !isThere(program))
const leaveOut = missing.length > 0 && !process.env.CI
if (leaveOut)
  console.error(
    `NOT RUN: test/desktop (${missing.join(', ')} not installed). .ci/run installs what they need and runs all.`,
  )

/** The end-to-end tests of docs/threat-model.md that run besides test/security. */
const flows =
  'guard unsigned webhook-bad-input public-listener delivery-once nothing-leaks no-token-leaks event-page login'
const ofSecurity = ['security/**/*', ...flows.split(' ').map((name) => `flows/${name}`)].map(
  (name) => `dist/test/${name}.test.js`,
)

const named = process.argv.slice(2).flatMap((name) => (name === '--security' ? ofSecurity : [name]))
const wantsAgentClis = named.length === 0 || named.some((name) => name.includes('agent-clis'))
if (process.env.CI && wantsAgentClis) installAgentClis()
const leaveOutAgentClis = !process.env.CI && !hasAgentClis()
if (leaveOutAgentClis && wantsAgentClis)
  console.error(
    `NOT RUN: test/agent-clis, ${countTests('agent-clis')} tests (the agent programs are not installed). node scripts/agent-clis.mjs installs them (0.9 GB).`,
  )

// As another user of the machine: as root, or by sudo without a password.
const hasOtherUser =
  process.platform === 'linux' &&
  (process.getuid() === 0 || spawnSync('sudo', ['-n', '-u', '#65534', 'true']).status === 0)
const leaveOutOtherUser = !hasOtherUser && (!process.env.CI || process.platform !== 'linux')
if (leaveOutOtherUser)
  console.error(
    `NOT RUN: test/security/other-user, ${countTests('security/other-user')} tests (no program can be run as another user here: on Linux, run as root or let sudo work without a password).`,
  )

const options = [
  ...(leaveOutOtherUser ? ['--ignore', 'dist/test/security/other-user/**'] : []),
  ...(leaveOut ? ['--ignore', 'dist/test/desktop/**'] : []),
  ...(leaveOutAgentClis ? ['--ignore', 'dist/test/agent-clis/**'] : []),
  // Some tests are of one system only; on Linux in CI there is no reason to leave one out.
  ...(process.platform === 'linux' && process.env.CI ? ['--forbid-pending'] : []),
]

/** Files named after `npm test --` run alone. */
const runNamed = () => {
  const args = [mocha, ...options, ...named]
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  return status ?? 1
}

/** One run of mocha over some folders; resolves with its figures and what it printed, if that is kept. */
const runPart = (folders, keep) =>
  new Promise((resolve) => {
    const files = folders.map((folder) => `dist/test/${folder}/**/*.test.js`)
    const child = spawn(process.execPath, [mocha, ...options, ...named, ...files], {
      cwd: root,
      stdio: ['inherit', keep ? 'pipe' : 'inherit', keep ? 'pipe' : 'inherit', 'ipc'],
    })
    const text = []
    child.stdout?.on('data', (chunk) => text.push(chunk))
    child.stderr?.on('data', (chunk) => text.push(chunk))
    // A run that ends without a word has failed.
    let stats = { passes: 0, failures: 1, pending: 0 }
    child.on('message', (figures) => (stats = figures))
    child.on('close', (code) => resolve({ ...stats, code, text: Buffer.concat(text) }))
  })

/** All of it, in two runs beside each other that take as long. */
const runAll = async () => {
  const parts = [
    ['cli', 'daemon', 'flows', 'shared'],
    ['agent-clis', 'desktop', 'faults', 'security', 'tray'],
  ]
  const runs = await Promise.all(parts.map((folders, index) => runPart(folders, index > 0)))
  for (const { text } of runs) process.stdout.write(text)
  const sum = (of) => runs.reduce((total, run) => total + of(run), 0)
  const [passes, failures, pending] = [
    sum((run) => run.passes),
    sum((run) => run.failures),
    sum((run) => run.pending),
  ]
  const leftOut = pending > 0 ? `, ${pending} left out` : ''
  process.stdout.write(`\n${passes} passed, ${failures} failed${leftOut}\n`)
  return runs.find(({ code }) => code !== 0) ? 1 : 0
}

process.exitCode = named.some((name) => name.endsWith('.js')) ? runNamed() : await runAll()
