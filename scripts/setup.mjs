// Makes a fresh clone ready to run with only Node and npm: installs missing packages and builds what has
// changed. Takes a few milliseconds when there is nothing to do.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
const inRoot = (...names) => join(root, ...names)

/** Exits when this Node is older than package.json requires, before something fails obscurely. */
const checkNode = () => {
  const [major, minor] = process.versions.node.split('.').map(Number)
  if (major > 20 || (major === 20 && minor >= 19)) return
  console.error(`doorward needs Node 20.19 or newer; this is ${process.version}`)
  process.exit(1)
}

/** Runs a program with its output shown, and exits with its exit code when it fails. */
export const run = (program, args, options = {}) => {
  const { status, error } = spawnSync(program, args, { cwd: root, stdio: 'inherit', ...options })
  if (error) console.error(`doorward: cannot run ${program}: ${error.message}`)
  if (status !== 0) process.exit(status ?? 1)
}

/** True when every package of the lock file is installed in its version. */
const isInstalled = () => {
  try {
    const read = (path) => JSON.parse(readFileSync(path, 'utf8')).packages
    const wanted = read(inRoot('package-lock.json'))
    const present = read(inRoot('node_modules', '.package-lock.json'))
    return Object.entries(wanted).every(
      ([path, { version, optional, peer }]) =>
        path === '' || present[path]?.version === version || ((optional || peer) && !present[path]),
    )
  } catch {
    return false
  }
}

const install = () => {
  if (isInstalled()) return
  console.error('installing the packages that are missing (only this once) ...')
  const npm = process.env.npm_execpath
  const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error']
  // npm sets the path of its own script, so npm.cmd need not be found on Windows.
  const output = { stdio: ['ignore', 2, 2] }
  if (npm?.endsWith('.js')) run(process.execPath, [npm, ...args], output)
  else run('npm', args, { ...output, shell: process.platform === 'win32' })
}

/** The sources below a folder; the agent programs of test/agent-clis are 0.9 GB that nobody builds. */
const sourcesIn = (folder) =>
  readdirSync(inRoot(folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : sourcesIn(path)
    return entry.name.endsWith('.ts') ? [path] : []
  })

/** Hashes everything that the build reads. */
const sourceHash = () => {
  const hash = createHash('sha256')
  const add = (path) =>
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(inRoot(path)))
      .update('\0')
  for (const path of ['tsconfig.json', 'package.json', 'package-lock.json']) add(path)
  for (const name of ['bundle', 'bundle-daemon', 'bundle-licenses'])
    add(join('scripts', `${name}.mjs`))
  for (const folder of ['shared', 'daemon', 'tray', 'cli', 'test', 'bench'])
    if (existsSync(inRoot(folder))) for (const path of sourcesIn(folder).toSorted()) add(path)
  return hash.digest('hex')
}

/** Contains the hash of the sources of the build; without this file the next command builds again. */
export const stamp = inRoot('dist', '.built')

const build = async () => {
  const wanted = sourceHash()
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  console.error('building ...')
  rmSync(inRoot('dist'), { recursive: true, force: true })
  run(process.execPath, [inRoot('node_modules', 'typescript', 'bin', 'tsc'), '-p', '.'], {
    stdio: ['ignore', 2, 2],
  })
  // Imported only here, because the bundler may have been missing before.
  const { bundle } = await import('./bundle.mjs')
  await bundle(root)
  for (const main of ['bin/doorward.cjs', 'bin/doorward-daemon.cjs', 'tray/main.js'])
    chmodSync(inRoot('dist', ...main.split('/')), 0o755)
  writeFileSync(stamp, wanted)
}

/** Installs and builds what is needed. */
export const setUp = async () => {
  checkNode()
  install()
  await build()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await setUp()
