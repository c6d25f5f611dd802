import { closeSync, constants, fstatSync, openSync, promises as files, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { DoorwardError, systemCode } from '../errors.ts'

/** Where everything of one installation lies. See the README for what each file holds. */
export type Home = {
  readonly root: string
  readonly config: string
  readonly env: string
  readonly tokens: string
  readonly clients: string
  readonly run: string
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
  const named = option ?? (env['DOORWARD_HOME'] || join(userHome(), '.doorward'))
  // No shell makes a folder of it in `--home=~/gateway`, nor a service manager of a variable.
  const root = absolute(expandTilde(named))
  return {
    root,
    config: join(root, 'config'),
    env: join(root, '.env'),
    tokens: join(root, 'tokens'),
    clients: join(root, 'clients'),
    run: join(root, 'run'),
    logs: join(root, 'logs'),
    daemonJson: join(root, 'run', 'daemon.json'),
    apiToken: join(root, 'run', 'api.token'),
    log: join(root, 'logs', 'daemon.log'),
  }
}

const absolute = (path: string): string => {
  try {
    return resolve(path)
  } catch (error) {
    throw new DoorwardError(
      'home-unusable',
      `the home ${path} is below the current folder, which is not there any more`,
      { cause: error, hint: 'go to a folder that is there, or name the home by its whole path' },
    )
  }
}

/**
 * Makes the folders of a home, all 0700, and refuses what other users could reach: a folder of
 * another owner or one that others can write to, and a folder for secrets that others can read.
 * Throws `home-unusable` (cannot be made or written) or `home-insecure` (with the chmod to run).
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
        { cause: error, hint: 'make it writable for you, or name another with DOORWARD_HOME' },
      )
    }
  }
  await checkWritable(home)
}

const checkFolder = async (folder: string, holdsSecrets: boolean): Promise<void> => {
  if (process.platform === 'win32') return
  // Of the folder itself where the name is a link to it: a home may lie on another disk.
  const { uid, mode } = await files.stat(folder)
  const permissions = (mode & 0o777).toString(8)
  if (uid !== process.getuid?.())
    throw new DoorwardError('home-insecure', `folder ${folder} belongs to another user (${uid})`, {
      hint: `sudo chown ${process.getuid?.()} ${quote(folder)}, or name another with DOORWARD_HOME`,
    })
  if ((mode & 0o077) === 0) return
  if (!holdsSecrets && (mode & 0o022) === 0) return files.chmod(folder, 0o700)
  throw new DoorwardError(
    'home-insecure',
    `folder ${folder} is open to other users (mode ${permissions})`,
    { hint: `chmod 700 ${quote(folder)}` },
  )
}

/** About what the daemon writes into `run` itself. */
const probeBytes = 4096

const checkWritable = async (home: Home): Promise<void> => {
  const probe = join(home.run, `.probe-${process.pid}`)
  try {
    // On a full disk an empty file can still be made.
    await files.writeFile(probe, Buffer.alloc(probeBytes), { mode: 0o600 })
  } catch (error) {
    const isFull = ['ENOSPC', 'EDQUOT'].includes(systemCode(error) ?? '')
    const mend = isFull ? 'make room on that disk' : 'make it writable for you'
    throw new DoorwardError(
      'home-unusable',
      `cannot write to ${home.run}: ${systemReason(error)}`,
      { cause: error, hint: `${mend}, or name another home with DOORWARD_HOME` },
    )
  } finally {
    await files.unlink(probe).catch(() => undefined)
  }
}

/**
 * Reads a file that must be ours and 0600, or undefined when there is none. Never follows a link. Reads
 * at once: for so little, threads and `node:fs/promises` would cost a command a tenth of its time.
 * Throws `home-insecure` with the command that mends it, `home-unusable` when it cannot be read.
 */
export const readSecretFile = async (path: string): Promise<string | undefined> => {
  let file: number
  try {
    // A pipe would keep us waiting for a writer; Windows knows neither flag.
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    if (systemCode(error) === 'ELOOP')
      throw new DoorwardError('home-insecure', `${path} is a symbolic link`, {
        hint: 'replace it by the file itself: a secret is read from no other place',
      })
    throw new DoorwardError('home-unusable', `cannot read ${path}: ${systemReason(error)}`, {
      cause: error,
      hint: isTransient(error)
        ? 'it is tried again when it is needed; if this stays, look at the limits (ulimit -n) and the disk'
        : `chmod 600 ${quote(path)}`,
    })
  }
  try {
    const stats = fstatSync(file)
    if (!stats.isFile())
      throw new DoorwardError('home-unusable', `${path} is not a file`, {
        hint: 'replace it by a file: a secret is read from no other place',
      })
    const { uid, mode } = stats
    if (process.platform !== 'win32') {
      if (uid !== process.getuid?.())
        throw new DoorwardError('home-insecure', `${path} belongs to another user (${uid})`, {
          hint: `sudo chown ${process.getuid?.()} ${quote(path)}`,
        })
      if ((mode & 0o077) !== 0)
        throw new DoorwardError(
          'home-insecure',
          `${path} is open to other users (mode ${(mode & 0o777).toString(8)})`,
          { hint: `chmod 600 ${quote(path)}` },
        )
    }
    return readFileSync(file, 'utf8')
  } finally {
    closeSync(file)
  }
}

/** True for a refusal of the system that says nothing of the file: it may be gone the next time. */
export const isTransient = (error: unknown): boolean =>
  ['EMFILE', 'ENFILE', 'ENOMEM', 'EIO', 'EAGAIN'].includes(systemCode(error) ?? '')

/** Why the system refused, in words: for messages about files and folders. */
export const systemReason = (error: unknown): string => {
  const code = systemCode(error)
  const words: Record<string, string> = {
    EACCES: 'permission denied',
    EPERM: 'operation not permitted',
    EROFS: 'the file system is read-only',
    ENOSPC: 'no space left on the disk',
    EDQUOT: 'no space left that this user may fill',
    EMFILE: 'too many files are open',
    ENFILE: 'too many files are open on this machine',
    EIO: 'the disk has a fault',
    ENOTDIR: 'a part of the path is a file, not a folder',
    EEXIST: 'a file of that name is in the way',
    EISDIR: 'it is a folder',
    ELOOP: 'the link leads back to itself',
    ENOENT: 'there is no such file',
  }
  return (code === undefined ? undefined : words[code]) ?? code ?? 'unknown reason'
}

const quote = (path: string): string =>
  /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`

/**
 * Makes a folder and those above it that are missing, all 0700. Throws what the system says, and
 * `home-unusable` with more than that where a link leads to nothing or a folder takes no other, as /proc:
 * there Node's own `recursive` tries for ever.
 */
const makeFolder = async (folder: string): Promise<void> => {
  const above = dirname(folder)
  try {
    await makeOne(folder)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || above === folder) throw error
    await makeFolder(above)
    await makeOne(folder).catch((still: unknown) => {
      if (systemCode(still) !== 'ENOENT') throw still
      throw new DoorwardError('home-unusable', `cannot make ${folder}: ${above} takes no folders`, {
        cause: still,
        hint: 'name another home with DOORWARD_HOME',
      })
    })
  }
}

const makeOne = async (folder: string): Promise<void> => {
  try {
    await files.mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if (!(await isFolder(folder))) throw error
  }
}

/** Throws where the name is a link to nothing. */
const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await files.stat(path)).isDirectory()
  } catch (error) {
    const to =
      systemCode(error) === 'ENOENT' ? await files.readlink(path).catch(() => undefined) : undefined
    if (to === undefined) return false
    throw new DoorwardError('home-unusable', `${path} is a link to ${to}, which is not there`, {
      cause: error,
      hint: 'make what it leads to, as by connecting its disk, or name another home with DOORWARD_HOME',
    })
  }
}

/**
 * The home folder of the user; undefined where neither HOME nor the system's list of users names one, as
 * in a container that runs under a number of its own.
 */
export const findUserHome = (): string | undefined => {
  try {
    const folder = homedir()
    return isAbsolute(folder) ? folder : undefined
  } catch {
    return undefined
  }
}

/** The same as programs with this environment take it, HOME first; the root folder where there is none. */
export const getUserHome = (env: NodeJS.ProcessEnv): string =>
  env['HOME'] || (findUserHome() ?? '/')

/** The home folder of the user. Throws `home-unusable` where there is none. */
const userHome = (): string => {
  const folder = findUserHome()
  if (folder !== undefined) return folder
  throw new DoorwardError('home-unusable', 'no home folder: HOME is not set', {
    hint: 'set HOME, or name a folder with --home or DOORWARD_HOME',
  })
}

/**
 * The path, with a `~` in front as the home folder of the user: what no shell has expanded. Throws
 * `home-unusable` for a `~` where there is no such folder.
 */
export const expandTilde = (path: string): string =>
  path === '~' || path.startsWith('~/') ? join(userHome(), path.slice(1)) : path
