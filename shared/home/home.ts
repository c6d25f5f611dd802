import { closeSync, constants, fstatSync, openSync, promises as files, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { DoorwardError, systemCode } from '../errors.ts'

/** The paths of one installation. See the README for what each file holds. */
export type Home = {
  readonly root: string
  readonly config: string
  readonly env: string
  readonly tokens: string
  readonly clients: string
  readonly accounts: string
  readonly run: string
  readonly workspaces: string
  readonly state: string
  readonly logs: string
  readonly daemonJson: string
  readonly apiToken: string
  readonly log: string
}

/**
 * The home named by `--home`, else `DOORWARD_HOME`, else `~/.doorward`.
 * Throws `home-unusable` when none of them names a folder.
 */
export const resolveHome = (option?: string, env: NodeJS.ProcessEnv = process.env): Home => {
  const named = option ?? (env['DOORWARD_HOME'] || join(requireUserHome(), '.doorward'))
  // No shell expands `--home=~/gateway`, and no service manager the `~` of a variable.
  const root = toAbsolute(expandTilde(named))
  return {
    root,
    config: join(root, 'config'),
    env: join(root, '.env'),
    tokens: join(root, 'tokens'),
    clients: join(root, 'clients'),
    accounts: join(root, 'accounts.json'),
    run: join(root, 'run'),
    workspaces: join(root, 'workspaces'),
    state: join(root, 'state'),
    logs: join(root, 'logs'),
    daemonJson: join(root, 'run', 'daemon.json'),
    apiToken: join(root, 'run', 'api.token'),
    log: join(root, 'logs', 'daemon.log'),
  }
}

const toAbsolute = (path: string): string => {
  try {
    return resolve(path)
  } catch (error) {
    throw new DoorwardError(
      'home-unusable',
      `the home ${path} is relative to the current folder, which was removed`,
      {
        cause: error,
        hint: 'change to a folder that exists, or give the absolute path of the home',
      },
    )
  }
}

/**
 * Creates the folders of a home, all 0700. Refuses a folder of another owner, one that others can write
 * to, and a folder for secrets that others can read. Throws `home-unusable` (cannot be created or
 * written) or `home-insecure` (with the chmod to run).
 */
export const prepareHome = async (home: Home): Promise<void> => {
  for (const folder of [home.root, home.config, home.logs, home.run, home.tokens, home.clients]) {
    try {
      await makeFolder(folder)
      await checkFolder(folder, [home.run, home.tokens, home.clients].includes(folder))
    } catch (error) {
      if (error instanceof DoorwardError) throw error
      throw new DoorwardError(
        'home-unusable',
        `cannot use the folder ${folder}: ${systemReason(error)}`,
        { cause: error, hint: 'make it writable for you, or set DOORWARD_HOME to another folder' },
      )
    }
  }
  await checkWritable(home)
}

const checkFolder = async (folder: string, holdsSecrets: boolean): Promise<void> => {
  if (process.platform === 'win32') return
  // Follows a link: a home may be stored on another disk.
  const { uid, mode } = await files.stat(folder)
  const permissions = (mode & 0o777).toString(8)
  if (uid !== process.getuid?.())
    throw new DoorwardError('home-insecure', `folder ${folder} belongs to another user (${uid})`, {
      hint: `sudo chown ${process.getuid?.()} ${quoteForShell(folder)}, or set DOORWARD_HOME to another folder`,
    })
  if ((mode & 0o077) === 0) return
  if (!holdsSecrets && (mode & 0o022) === 0) return files.chmod(folder, 0o700)
  throw new DoorwardError(
    'home-insecure',
    `folder ${folder} is open to other users (mode ${permissions})`,
    { hint: `chmod 700 ${quoteForShell(folder)}` },
  )
}

/** About as much as the daemon writes to `run`. */
const probeBytes = 4096

const checkWritable = async (home: Home): Promise<void> => {
  const probe = join(home.run, `.probe-${process.pid}`)
  try {
    // A full disk still creates an empty file.
    await files.writeFile(probe, Buffer.alloc(probeBytes), { mode: 0o600 })
  } catch (error) {
    const isFull = ['ENOSPC', 'EDQUOT'].includes(systemCode(error) ?? '')
    const fix = isFull ? 'free space on that disk' : 'make it writable for you'
    throw new DoorwardError(
      'home-unusable',
      `cannot write to ${home.run}: ${systemReason(error)}`,
      { cause: error, hint: `${fix}, or set DOORWARD_HOME to another folder` },
    )
  } finally {
    await files.unlink(probe).catch(() => undefined)
  }
}

const mebibyte = 1024 * 1024

/**
 * Reads a file that must be ours, 0600 and of at most `maxBytes`; undefined when it does not exist. Never
 * follows a link. The synchronous calls save a short command a tenth of its time. Throws `home-insecure` with
 * the command that fixes it, `home-unusable` when it cannot be read.
 */
export const readSecretFile = async (
  path: string,
  maxBytes = mebibyte,
): Promise<string | undefined> => {
  let file: number
  try {
    // Without O_NONBLOCK a pipe would wait for a writer. Windows has neither flag.
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    if (systemCode(error) === 'ELOOP')
      throw new DoorwardError('home-insecure', `${path} is a symbolic link`, {
        hint: 'replace it with the file itself: links to secrets are not followed',
      })
    throw new DoorwardError('home-unusable', `cannot read ${path}: ${systemReason(error)}`, {
      cause: error,
      hint: isTransient(error)
        ? 'doorward tries again when it needs the file; if this persists, check the limits (ulimit -n) and the disk'
        : `chmod 600 ${quoteForShell(path)}`,
    })
  }
  try {
    const stats = fstatSync(file)
    if (!stats.isFile())
      throw new DoorwardError('home-unusable', `${path} is not a file`, {
        hint: 'replace it with a regular file',
      })
    const { uid, mode, size } = stats
    if (process.platform !== 'win32') {
      if (uid !== process.getuid?.())
        throw new DoorwardError('home-insecure', `${path} belongs to another user (${uid})`, {
          hint: `sudo chown ${process.getuid?.()} ${quoteForShell(path)}`,
        })
      if ((mode & 0o077) !== 0)
        throw new DoorwardError(
          'home-insecure',
          `${path} is open to other users (mode ${(mode & 0o777).toString(8)})`,
          { hint: `chmod 600 ${quoteForShell(path)}` },
        )
    }
    // A sparse file takes no room on the disk, but would in memory.
    if (size > maxBytes)
      throw new DoorwardError(
        'home-unusable',
        `${path} has more than ${maxBytes / mebibyte} MiB, so it is not read`,
        { hint: 'move it away: doorward writes no file of that size there' },
      )
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

/** True for a system error that has nothing to do with the file and may not happen again. */
export const isTransient = (error: unknown): boolean =>
  ['EMFILE', 'ENFILE', 'ENOMEM', 'EIO', 'EAGAIN'].includes(systemCode(error) ?? '')

/** Describes a system error for messages about files and folders. */
export const systemReason = (error: unknown): string => {
  const code = systemCode(error)
  const words: Record<string, string> = {
    EACCES: 'permission denied',
    EPERM: 'operation not permitted',
    EROFS: 'the file system is read-only',
    ENOSPC: 'no space left on the disk',
    EDQUOT: 'the disk quota of this user is used up',
    EMFILE: 'too many files are open',
    ENFILE: 'too many files are open on this machine',
    EIO: 'input/output error of the disk',
    ENOTDIR: 'a part of the path is a file, not a folder',
    EEXIST: 'a file of that name already exists',
    EISDIR: 'it is a folder',
    ELOOP: 'the symbolic link points to itself',
    ENOENT: 'no such file',
    E2BIG: 'its arguments and environment are larger than the system allows',
  }
  return (code === undefined ? undefined : words[code]) ?? code ?? 'unknown reason'
}

export const quoteForShell = (path: string): string =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`

/** Creates a folder and its missing parents, all 0700. Node's own `recursive` never returns below /proc. */
const makeFolder = async (folder: string, isAgain = false): Promise<void> => {
  try {
    await files.mkdir(folder, { mode: 0o700 })
  } catch (error) {
    const isFolder = await files.stat(folder).then(
      (found) => found.isDirectory(),
      () => false,
    )
    if (isFolder) return
    if (systemCode(error) !== 'ENOENT' || isAgain) throw error
    await makeFolder(dirname(folder))
    await makeFolder(folder, true)
  }
}

/**
 * The home folder of the user; undefined where neither HOME nor the user database names one, such as in
 * a container with an arbitrary uid.
 */
export const findUserHome = (): string | undefined => {
  try {
    const folder = homedir()
    return isAbsolute(folder) ? folder : undefined
  } catch {
    return undefined
  }
}

/** The same for programs with this environment: HOME first, and `/` where no folder is known. */
export const getUserHome = (env: NodeJS.ProcessEnv): string =>
  env['HOME'] || (findUserHome() ?? '/')

/** As `findUserHome`, but throws `home-unusable` where no folder is known. */
const requireUserHome = (): string => {
  const folder = findUserHome()
  if (folder !== undefined) return folder
  throw new DoorwardError('home-unusable', 'no home folder: HOME is not set', {
    hint: 'set HOME, or give a folder with --home or DOORWARD_HOME',
  })
}

/** Expands a leading `~`. Throws `home-unusable` for it where no home folder is known. */
export const expandTilde = (path: string): string =>
  path === '~' || path.startsWith('~/') ? join(requireUserHome(), path.slice(1)) : path
