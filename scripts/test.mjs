// Runs all the tests on the build. Some need more than npm brings: test/desktop and test/page a browser and a
// virtual display, test/agent-clis the agent programs, test/security/other-user another user. In CI they always run
// and fail where something is missing; elsewhere they are skipped, with a message.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { hasAgentClis, installAgentClis } from './agent-clis.mjs'
import { root, setUp } from './setup.mjs'

await setUp()

const mocha = join(root, 'node_modules', 'mocha', 'bin', 'mocha.js')

/** Counts the tests of a folder without running them. */
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
  'gnome-keyring-daemon',
]
const isThere = (program) =>
  (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))
const missing = programs.filter((program) => !isThere(program))
const leaveOut = missing.length > 0 && !process.env.CI
if (leaveOut)
  console.error(
    `NOT RUN: test/desktop and test/page (${missing.join(', ')} not installed). .ci/run installs what they need and runs all.`,
  )

const brokerTests = ['flows/machines/**', 'daemon/queue/nats/**', 'daemon/queue/engines.test.js']
// Debian has it where the PATH of a user does not look.
process.env.PATH += `${delimiter}/usr/sbin`
const leaveOutBroker = !isThere('nats-server') && !process.env.CI
if (leaveOutBroker)
  console.error('NOT RUN: the tests of several machines (nats-server is not installed).')

/** The end-to-end tests of docs/threat-model.md that run besides test/security. */
const flows =
  'guard webhook-bad-input public-listener delivery-once nothing-leaks no-token-leaks login machines access'
const ofSecurity = [
  'security/**/*',
  'page/opening',
  ...flows.split(' ').map((name) => `flows/*/${name}`),
].map((name) => `dist/test/${name}.test.js`)

const groups = { '--security': ofSecurity, '--attacks': ['dist/test/attacks/attacks.test.js'] }
const named = process.argv.slice(2).flatMap((name) => groups[name] ?? [name])
const wantsAgentClis = named.length === 0 || named.some((name) => name.includes('agent-clis'))
if (process.env.CI && wantsAgentClis) installAgentClis()
const leaveOutAgentClis = !process.env.CI && !hasAgentClis()
if (leaveOutAgentClis && wantsAgentClis)
  console.error(
    `NOT RUN: test/agent-clis, ${countTests('agent-clis')} tests (the agent programs are not installed). node scripts/agent-clis.mjs installs them (0.9 GB).`,
  )

// Another user of the machine needs root, or sudo without a password.
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
  ...(leaveOut ? ['--ignore', 'dist/test/{desktop,page}/**'] : []),
  ...(leaveOutBroker ? brokerTests.flatMap((name) => ['--ignore', `dist/test/${name}`]) : []),
  ...(leaveOutAgentClis ? ['--ignore', 'dist/test/agent-clis/**'] : []),
  // Tests for other systems are pending; on Linux in CI no test may be.
  ...(process.platform === 'linux' && process.env.CI ? ['--forbid-pending'] : []),
]

/** Runs only the files named after `npm test --`. */
const runNamed = () => {
  const args = [mocha, ...options, ...named]
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  return status ?? 1
}

/** Runs mocha over some folders; resolves with its figures and its output. */
const runPart = (folders) =>
  new Promise((resolve) => {
    const files = folders.map((folder) => `dist/test/${folder}/**/*.test.js`)
    const child = spawn(process.execPath, [mocha, ...options, ...named, ...files], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const text = []
    child.stdout.on('data', (chunk) => text.push(chunk))
    child.stderr.on('data', (chunk) => text.push(chunk))
    // A run that exits without its figures has failed.
    let stats = { passes: 0, failures: 1, pending: 0 }
    child.on('message', (figures) => (stats = figures))
    child.on('close', (code) => resolve({ ...stats, code, text: Buffer.concat(text) }))
  })

/** Independent of each other, those that take longest first. */
const parts = [
  ['cli'],
  ['flows/daemon', 'flows/machines', 'flows/oauth'],
  ['daemon'],
  ['desktop'],
  ['flows/webhook'],
  ['faults'],
  ['page'],
  ['shared', 'tray'],
  ['agent-clis'],
  ['security'],
  ['attacks'],
]
/** More than a small machine has cores: half of the time a test waits for a process, a socket or a timer. */
const atOnce = 3
const isLeftOut = { desktop: leaveOut, page: leaveOut, 'agent-clis': leaveOutAgentClis }

/** A test that is in no part would not run, and nobody would see it. */
const checkParts = () => {
  const tests = readdirSync(join(root, 'dist', 'test'), { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => name.replaceAll('\\', '/'))
  const folders = parts.flat()
  const others = tests.filter((name) => !folders.some((folder) => name.startsWith(`${folder}/`)))
  if (others.length === 0) return
  console.error(`scripts/test.mjs runs them in no part: ${others.join(', ')}`)
  process.exit(1)
}

/** Runs all parts, some at a time, each as soon as there is room. */
const runAll = async () => {
  checkParts()
  const left = parts.filter(([folder]) => !isLeftOut[folder])
  const runs = []
  const runNext = async () => {
    for (let folders = left.shift(); folders; folders = left.shift()) {
      const start = performance.now()
      const run = await runPart(folders)
      runs.push(run)
      const seconds = Math.round((performance.now() - start) / 1000)
      process.stdout.write(`\ntest/${folders.join(', ')}, ${seconds} s\n`)
      process.stdout.write(run.text)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, runNext))
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
