import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageFolder } from '../../../shared/version.ts'
import { temporaryFolder } from '../temporary.ts'

type Result = { readonly code: number; readonly stdout: string; readonly stderr: string }

const root = fileURLToPath(packageFolder)

const run = async (
  file: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv },
): Promise<Result> =>
  new Promise((resolve) => {
    const child = execFile(
      file,
      args,
      { ...options, timeout: 110_000, maxBuffer: 10_000_000 },
      (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
    child.stdin?.end()
  })

/** npm as it is, with its cache and its settings: it ran just before, to install what the tests need. */
const npm = async (args: readonly string[], cwd: string): Promise<string> => {
  const script = process.env['npm_execpath']
  const { code, stdout, stderr } = script?.endsWith('.js')
    ? await run(process.execPath, [script, ...args], { cwd })
    : await run('npm', args, { cwd })
  assert.equal(code, 0, `npm ${args[0]}: ${stderr}`)
  return stdout
}

/** A package that was packed and installed, as people install it. */
export type InstalledPackage = {
  readonly prefix: string
  /** An empty home of a person. */
  readonly home: string
  /** Where its files are. */
  readonly inside: string
  /** The files that were packed, by their paths in it. */
  readonly files: readonly string[]
  /** The command that people type. */
  readonly program: string
  /** Runs it on a machine with nothing but Node. */
  readonly doorward: (...args: string[]) => Promise<Result>
}

/**
 * Packs, and installs globally into an empty prefix with a name that is hard on scripts; no script of any
 * package runs.
 */
export const installPackage = async (): Promise<InstalledPackage> => {
  const folder = await temporaryFolder()
  const packed = await npm(
    ['pack', '--json', '--ignore-scripts', '--pack-destination', folder],
    root,
  )
  const [{ filename, files }] = JSON.parse(packed) as [
    { filename: string; files: { path: string }[] },
  ]
  const prefix = join(folder, "my prefix's é")
  const options = ['--global', '--prefix', prefix, '--ignore-scripts', '--prefer-offline']
  await npm(
    ['install', ...options, '--no-audit', '--no-fund', join(folder, filename)],
    // Not in the repository, whose node_modules must not be what makes it work.
    folder,
  )
  // A machine with nothing but Node.
  const bin = join(folder, 'bin')
  const home = join(folder, 'home')
  await mkdir(bin)
  await mkdir(home)
  await symlink(process.execPath, join(bin, 'node'))
  const env = { PATH: bin, HOME: home, DOORWARD_PORT: '0' }
  const program = join(prefix, 'bin', 'doorward')
  return {
    prefix,
    home,
    inside: join(prefix, 'lib', 'node_modules', 'doorward'),
    files: files.map(({ path }) => path),
    program,
    doorward: async (...args) => run(program, args, { cwd: home, env }),
  }
}
