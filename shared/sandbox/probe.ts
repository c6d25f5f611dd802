import { execFile } from 'node:child_process'
import { findProgram } from '../agents/detect.ts'
import { toPlainLine } from '../text.ts'
import { accessSync, constants, readFileSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { getUserHome } from '../home/home.ts'

/** The program that makes a sandbox, or why it is missing; `hint` is the way to one. */
type Sandbox =
  | { readonly program: string; readonly kind: 'bwrap' | 'sandbox-exec' }
  | { readonly missing: string; readonly hint: string }

const macProgram = '/usr/bin/sandbox-exec'
const probeMs = 5000
const againMs = 10_000

/** Those whose numbers of system calls the daemon knows. */
const processors = ['x64', 'arm64', 'arm', 'riscv64']

const tried = new Map<string, Promise<string | undefined>>()

/** Looks for a sandbox, and tries it: once, but again after a while where it does not work. */
export const findSandbox = async (env: NodeJS.ProcessEnv): Promise<Sandbox> => {
  if (process.platform === 'darwin') return { program: macProgram, kind: 'sandbox-exec' }
  if (process.platform !== 'linux')
    return {
      missing: 'doorward has no sandbox for this system',
      hint: 'run doorward on Linux or macOS, or inside WSL',
    }
  if (!processors.includes(process.arch))
    return { missing: `doorward has no sandbox for ${process.arch}`, hint: 'use another machine' }
  const program = await findProgram('bwrap', env['PATH'] ?? '', undefined)
  if (program === undefined)
    return {
      missing: "bubblewrap (bwrap) is not on doorward's PATH",
      hint: 'install it: sudo apt install bubblewrap (other systems have it under the same name)',
    }
  const trying = tried.get(program) ?? tryProgram(program)
  tried.set(program, trying)
  const why = await trying
  if (why === undefined) return { program, kind: 'bwrap' }
  setTimeout(() => tried.delete(program), againMs).unref()
  return toMissing(program, why)
}

/** The namespaces that every sandbox has. */
export const bwrapNamespaces = [
  '--unshare-user',
  // The network of the machine leads to its metadata, and to sockets that no mount hides.
  '--unshare-net',
  '--unshare-ipc',
  '--unshare-pid',
  '--unshare-uts',
  '--unshare-cgroup-try',
  '--die-with-parent',
  '--new-session',
  '--cap-drop',
  'ALL',
]

/** Whether it can limit folders in memory: bubblewrap 0.7 and later. */
export const canLimitFolders = async (program: string): Promise<boolean> =>
  new Promise((resolve) => {
    execFile(program, ['--help'], { timeout: probeMs, env: {} }, (_, stdout) =>
      resolve(stdout.includes('--size ')),
    )
  })

/** The words with which the program failed; undefined when it works. */
const tryProgram = async (program: string): Promise<string | undefined> => {
  const root = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev']
  const args = [...bwrapNamespaces, ...root, '--', program, '--version']
  return new Promise((resolve) => {
    execFile(program, args, { timeout: probeMs, env: {} }, (error, _, stderr) =>
      resolve(error ? toPlainLine(stderr).trim() || error.message : undefined),
    )
  })
}

const toMissing = (program: string, why: string): Sandbox => {
  const isForbidden = /namespace|uid map|Operation not permitted|Permission denied|No space/i
  if (!isForbidden.test(why))
    return { missing: `${program} does not work: ${why}`, hint: `try: ${program} --version` }
  return {
    missing: `this system lets ${program} create no namespaces: ${why}`,
    hint: 'allow user namespaces: sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), kernel.unprivileged_userns_clone=1 (older Debian) or user.max_user_namespaces=15000; in a container: doorward help containers',
  }
}

/** Where root may make a group that counts threads: version 1 of control groups, and version 2 (cgroups(7)). */
export const findGroupFolder = (): string | undefined =>
  ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].find((folder) => {
    try {
      accessSync(join(folder, 'cgroup.procs'), constants.W_OK)
      const counts = join(folder, 'cgroup.subtree_control')
      return folder.endsWith('/pids') || /\bpids\b/.test(readFileSync(counts, 'latin1'))
    } catch {
      return false
    }
  })

/** True where the kernel does not bound the processes of a run: its own limit does not count those of root. */
export const isUnbounded = (): boolean =>
  process.platform === 'linux' && process.getuid?.() === 0 && findGroupFolder() === undefined

/** `what` goes on after "agent <name> ". */
export const unbounded = {
  what: 'may start processes faster than they are counted: doorward is root, and can make no control group here',
  hint: 'run doorward as another user, or give its container a writable /sys/fs/cgroup',
}

export const isInside = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`)

/** The homes of the user and of doorward, by their names and where they really are. */
export const listHomes = async (env: NodeJS.ProcessEnv, homeFolder: string): Promise<string[]> => {
  const homes = [getUserHome(env), homeFolder]
  const real = await Promise.all(homes.map(async (home) => realpath(home).catch(() => home)))
  return [...new Set([...homes, ...real])]
}

/** True when a folder is the root, or contains or is a home. */
export const wouldShow = (path: string, homes: readonly string[]): boolean =>
  path === dirname(path) || homes.some((home) => isInside(home, path))

/** The sandbox for a program that starts in this folder; a folder that contains a home would show it all. */
export const findSandboxFor = async (
  cwd: string,
  homes: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Sandbox> =>
  wouldShow(await realpath(cwd).catch(() => cwd), homes)
    ? {
        missing: `its cwd ${cwd} contains your home folder, or doorward's`,
        hint: 'name a folder of a project: doorward config edit agents',
      }
    : findSandbox(env)
