import { realpath, stat } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import type { NetworkMode, RunInput } from '../../../shared/api/api.ts'
import type { CliKind } from '../../../shared/agents/clis.ts'
import { defaultLimits, type Limits } from '../../../shared/agents/limits.ts'
import { type HostRule, readAllowed } from '../../../shared/agents/network.ts'
import type { CliAgent, CommandAgent } from '../../../shared/agents/schema.ts'
import {
  getNetworkMode,
  getToolLevel,
  needsSandbox,
  wantsSandbox,
} from '../../../shared/agents/tools.ts'
import { getUserHome } from '../../../shared/home/home.ts'
import {
  canLimitFolders,
  findSandboxFor,
  isInside,
  isUnbounded,
  listHomes,
  wouldShow,
} from '../../../shared/sandbox/probe.ts'
import { toAgentError } from '../answer.ts'
import type { Question } from '../http-agent.ts'
import { openWay, type WayOut } from '../network/way-out.ts'
import { buildBwrap, buildSocketFilter } from './linux.ts'
import { type Bounds, openGroup } from './limits.ts'
import { buildSandboxExec } from './macos.ts'
import { listProgramFiles, locate, loginFilesOf, type Room } from './visible-files.ts'

/** The sandbox that an agent asks for. */
export type SandboxWish = {
  /** Without a sandbox it is not run. */
  readonly required: boolean
  readonly network: NetworkMode
  /** The hosts that the owner adds. */
  readonly allow: readonly HostRule[]
  readonly limits: Limits
  /** Whether it may change its folder. */
  readonly writable: boolean
  /** The program whose login, and whose model, it reaches. */
  readonly login?: CliKind | undefined
}

/** Undefined for an agent that asks for no sandbox. */
export const toSandboxWish = (
  agent: CliAgent | CommandAgent,
  { workspace }: Pick<Question, 'workspace'>,
): SandboxWish | undefined => {
  if (!wantsSandbox(agent, workspace !== undefined)) return undefined
  const isCommand = agent.kind === 'command'
  // In a folder of the owner's, only tools that may change files.
  const canWrite = !isCommand && ['write', 'args'].includes(getToolLevel(agent))
  return {
    required: needsSandbox(agent),
    network: getNetworkMode(agent),
    allow: readAllowed(agent.network),
    limits: agent.limits ?? defaultLimits,
    writable: workspace ? workspace.access === 'write' : canWrite,
    login: isCommand ? undefined : agent.kind,
  }
}

type Run = {
  readonly argv: readonly string[]
  readonly cwd: string
  /** That of the agent. */
  readonly env: Readonly<Record<string, string>>
  /** Variables that the owner has written. */
  readonly own: Readonly<Record<string, string>>
  /** Values of variables that may name files: certificates, the file of the event, what the owner sets. */
  readonly values: readonly string[]
  /** Its folder for temporary files. */
  readonly folder: string
  readonly hidden: readonly string[]
  readonly doorwardHome: string
}

/** How to start the program: in a sandbox, or as it is with what its owner should know. */
export type Confined = {
  readonly argv: readonly string[]
  /** The filter of system calls, to be file descriptor 3. */
  readonly filter?: Buffer | undefined
  readonly note?: string
  readonly sandbox?: RunInput['sandbox']
  readonly way?: WayOut
  /** What is watched from outside. */
  readonly bounds?: Bounds
}

/**
 * Puts a program into a sandbox that shows the system, its folder, its installation, its login, and the files
 * that its words and variables name. Throws `sandbox-unavailable` where it needs one and there is none, and
 * `ENOENT` when there is no such program.
 */
export const confine = async (
  wish: SandboxWish,
  run: Run,
  ours: NodeJS.ProcessEnv,
): Promise<Confined> => {
  const homes = await listHomes(run.env, run.doorwardHome)
  const sandbox = await findSandboxFor(run.cwd, homes, ours)
  if ('missing' in sandbox) {
    if (!wish.required) return { argv: run.argv, note: `there was no sandbox: ${sandbox.missing}` }
    const { missing, hint } = sandbox
    throw toAgentError('sandbox-unavailable', `there is no sandbox: ${missing}`, { hint })
  }
  const way = await openWay(wish, run, sandbox.kind === 'sandbox-exec')
  const room = await furnish(wish, run, homes, sandbox.program, way.ports)
  const made = {
    way,
    sandbox: {
      kind: sandbox.kind,
      network: wish.network,
      ...(isUnbounded() && { unbounded: true as const }),
    },
  }
  if (sandbox.kind === 'sandbox-exec') return { argv: buildSandboxExec(room), ...made }
  sizing ??= canLimitFolders(sandbox.program)
  const bwrap = buildBwrap({ ...room, sizesFolders: await sizing })
  const group = openGroup(wish.limits)
  return {
    argv: [...group.words, ...bwrap],
    bounds: { ...wish.limits, group, folders: [...new Set(room.write.values())] },
    filter: buildSocketFilter(process.arch),
    ...made,
  }
}

let sizing: Promise<boolean> | undefined

/** Variables of the desktop, and for temporary files, which go to `/tmp` or the folder of the run. */
const folderVariables = ['XDG_RUNTIME_DIR', 'TMPDIR', 'TEMP', 'TMP']

const furnish = async (
  wish: SandboxWish,
  run: Run,
  homes: readonly string[],
  sandbox: string,
  ports: readonly number[],
): Promise<Room> => {
  const { cwd, env, folder, doorwardHome } = run
  const [name = '', ...words] = run.argv
  const searchPath = env['PATH'] ?? ''
  const program = await locate(name, cwd, searchPath)
  if (program === undefined) throw Object.assign(new Error(name), { code: 'ENOENT' })
  const login = wish.login && loginFilesOf(wish.login, env)
  const { links, paths } = await listProgramFiles(program, searchPath)
  const read = [
    ...paths,
    ...(login?.read ?? []),
    ...(await listNamed(words, homes)),
    ...(await listNamed(run.values, homes, true)),
  ]
  const write = new Map([[folder, folder]])
  if (wish.writable) write.set(cwd, cwd)
  else if (!isInside(cwd, folder)) read.push(cwd)
  return {
    sandbox,
    argv: [program, ...words],
    cwd,
    network: { ports },
    limits: wish.limits,
    unset: folderVariables.filter((name) => !isInside(env[name] ?? folder, folder)),
    userHome: getUserHome(env),
    doorwardHome,
    empty: login?.folders ?? [],
    links,
    read,
    hidden: run.hidden,
    write,
  }
}

/** The files, and folders that show no home, that are named by their full path. */
const listNamed = async (
  words: readonly string[],
  homes: readonly string[],
  onlyFiles = false,
): Promise<string[]> => {
  const found: string[] = []
  for (const word of new Set(words)) {
    const path = word.startsWith('-') ? word.slice(word.indexOf('=') + 1) : word
    if (!isAbsolute(path) || path.includes('\0')) continue
    const real = await realpath(path).catch(() => undefined)
    if (real === undefined || wouldShow(real, homes)) continue
    const there = await stat(real)
    if (there.isFile() || (there.isDirectory() && !onlyFiles)) found.push(path)
  }
  return found
}
