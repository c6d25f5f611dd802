import { open, readlink, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { findProgram } from '../../../shared/agents/detect.ts'
import type { Limits } from '../../../shared/agents/limits.ts'
import type { CliKind } from '../../../shared/agents/clis.ts'
import { getUserHome } from '../../../shared/home/home.ts'

/**
 * The way out of a sandbox. On Linux it has a network of its own, where the daemon listens; on macOS it may connect to
 * these ports of the machine.
 */
type RoomNetwork = { readonly ports: readonly number[] }

/** The files and folders that the sandbox of one run shows. */
export type Room = {
  /** The program that makes it. */
  readonly sandbox: string
  readonly argv: readonly string[]
  readonly cwd: string
  readonly network: RoomNetwork
  readonly limits: Limits
  /** Whether the program can limit folders in memory. */
  readonly sizesFolders?: boolean
  /** Variables that name folders which are not there. */
  readonly unset: readonly string[]
  readonly userHome: string
  readonly doorwardHome: string
  /** Empty folders that it may write to. */
  readonly empty: readonly string[]
  /** Links by where they lead. */
  readonly links: ReadonlyMap<string, string>
  readonly read: readonly string[]
  /** Files and folders in these that are empty. */
  readonly hidden: readonly string[]
  /** Real paths by the path inside. */
  readonly write: ReadonlyMap<string, string>
}

/** The path of a program as the system would find it, or undefined. */
export const locate = async (
  program: string,
  cwd: string,
  searchPath: string,
): Promise<string | undefined> => {
  if (program.includes(sep)) {
    const path = resolve(cwd, program)
    return (await stat(path).catch(() => undefined))?.isFile() ? path : undefined
  }
  return findProgram(program, searchPath, undefined)
}

const maxInterpreters = 3

/** Links by where they lead, which an interpreter follows to find its packages; and files and folders. */
type ProgramFiles = { readonly links: Map<string, string>; readonly paths: Set<string> }

/**
 * The files of a program that may be installed below a home: itself, its packages (npm, a virtual environment
 * of Python, `lib` beside its `bin`), and the same of the interpreter that its first line names.
 */
export const listProgramFiles = async (
  path: string,
  searchPath: string,
  depth = 0,
): Promise<ProgramFiles> => {
  const real = await realpath(path)
  const places = [...new Set([...(await followLinks(path)), real])]
  const links = new Map(places.filter((place) => place !== real).map((place) => [place, real]))
  const paths = new Set([real, ...(await listPackages(places, real))])
  const interpreter = await readInterpreter(real, searchPath)
  if (interpreter === undefined || depth === maxInterpreters) return { links, paths }
  const more = await listProgramFiles(interpreter, searchPath, depth + 1)
  return {
    links: new Map([...links, ...more.links]),
    paths: new Set([...paths, ...more.paths]),
  }
}

/**
 * The paths that a link leads through. The Python of a virtual environment is often a link into a folder that is
 * itself a link, such as `cpython-3.11` to `cpython-3.11.7`.
 */
const followLinks = async (path: string): Promise<string[]> => {
  const places = [path]
  for (let at = path; ;) {
    const target = await readlink(at).catch(() => undefined)
    if (target === undefined) return places
    // In the sandbox a folder that is a link outside is a folder, so a relative link may lead to another place.
    places.push(resolve(dirname(at), target))
    at = resolve(await realpath(dirname(at)), target)
    places.push(at)
  }
}

const listPackages = async (places: readonly string[], real: string): Promise<string[]> => {
  const packages = `${sep}node_modules${sep}`
  const at = real.indexOf(packages)
  if (at !== -1) return [real.slice(0, at + packages.length - 1)]
  const folders: string[] = []
  // A Python in a virtual environment is a link to that of the system.
  for (const place of places) {
    if (basename(dirname(place)) !== 'bin') continue
    const root = dirname(dirname(place))
    if (await exists(join(root, 'pyvenv.cfg'))) folders.push(root)
    else if (await exists(join(root, 'lib'))) folders.push(join(root, 'lib'))
  }
  return folders
}

const exists = async (path: string): Promise<boolean> =>
  (await stat(path).catch(() => undefined)) !== undefined

/** The program that the first line of a script names, which may be through env. */
const readInterpreter = async (path: string, searchPath: string): Promise<string | undefined> => {
  const [program, ...rest] = (await readFirstLine(path)).split(/\s+/).filter((word) => word !== '')
  if (program === undefined || !isAbsolute(program)) return undefined
  if (basename(program) !== 'env') return (await exists(program)) ? program : undefined
  const word = rest.find((one) => !one.startsWith('-') && !one.includes('='))
  return word === undefined ? undefined : locate(word, '/', searchPath)
}

const firstLineBytes = 256

/** The text after `#!`, or an empty text. */
const readFirstLine = async (path: string): Promise<string> => {
  const file = await open(path).catch(() => undefined)
  if (!file) return ''
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(firstLineBytes), 0, firstLineBytes)
    return /^#!([^\n]*)/.exec(buffer.toString('latin1', 0, bytesRead))?.[1] ?? ''
  } finally {
    await file.close()
  }
}

/*
 * What each agent program must have of its own to be logged in: nothing else of a person's home is in the
 * sandbox. Histories, sessions, instructions and servers of tools are left out.
 */

type LoginFiles = {
  /** Folders that it writes to: empty, but for what follows, and in memory. */
  readonly folders: readonly string[]
  readonly read: readonly string[]
}

const named = (env: NodeJS.ProcessEnv, name: string, ...path: readonly string[]): string =>
  env[name] || join(getUserHome(env), ...path)

const inFolder = (folder: string, ...names: readonly string[]): string[] =>
  names.map((name) => join(folder, name))

const none: LoginFiles = { folders: [], read: [] }

const loginFiles: Readonly<Partial<Record<CliKind, (env: NodeJS.ProcessEnv) => LoginFiles>>> = {
  // Elsewhere it gets a folder of its own.
  claude: (env) =>
    process.platform === 'darwin'
      ? {
          folders: [
            named(env, 'CLAUDE_CONFIG_DIR', '.claude'),
            join(env['CLAUDE_CONFIG_DIR'] || getUserHome(env), '.claude.json'),
          ],
          read: [],
        }
      : none,
  opencode: (env) => {
    const cache = join(named(env, 'XDG_CACHE_HOME', '.cache'), 'opencode')
    const state = join(named(env, 'XDG_STATE_HOME', '.local', 'state'), 'opencode')
    return {
      folders: [cache, state],
      // Packages of providers that it has installed.
      read: inFolder(cache, 'node_modules', 'packages'),
    }
  },
  llm: (env) => {
    const config = join(named(env, 'XDG_CONFIG_HOME', '.config'), 'io.datasette.llm')
    const folder = env['LLM_USER_PATH'] || config
    return {
      folders: [folder],
      read: inFolder(
        folder,
        'keys.json',
        'default_model.txt',
        'aliases.json',
        'extra-openai-models.yaml',
      ),
    }
  },
}

/** The files of a login, by the environment of the agent; none where its home is a copy, made for each run. */
export const loginFilesOf = (kind: CliKind, env: NodeJS.ProcessEnv): LoginFiles =>
  loginFiles[kind]?.(env) ?? none
