import { mkdir } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { expandTilde } from '../../shared/home/home.ts'
import { networkVariables, proxyPasswords } from '../../shared/network/variables.ts'
import { toPlainText } from '../../shared/text.ts'
import { toAgentError } from './answer.ts'
import { cleanEnvironment, collectSecrets, getProviders, hideSecrets } from './environment.ts'
import type { Question } from './http-agent.ts'
import type { RunProcess } from './orphans.ts'
import type { HomeRequest, OwnHome } from './own-home.ts'
import { type ProcessOptions, type ProcessResult, toFolderError } from './process.ts'
import type { ReachedLimit } from './sandbox/disk.ts'
import type { Bounds } from './sandbox/limits.ts'
import { confine, type Confined, type SandboxWish } from './sandbox/sandbox.ts'
import { makeAgentFolder, removeFolder } from './workspace.ts'

const maxStderrLines = 5

/** The one variable about an event that may open a file to a sandbox: a sender chooses the value of others. */
export const eventFileVariable = 'DOORWARD_EVENT_FILE'

/** Returns an access token that is valid for this many milliseconds if the provider issues such, or throws. */
export type GetToken = (provider: string, minValidityMs: number) => Promise<string>

export type RunContext = {
  /** The daemon's own; the agent gets a part of it. */
  readonly env: NodeJS.ProcessEnv
  readonly run: RunProcess
  /** For `oauth:<provider>`. */
  readonly getToken: GetToken
  readonly signal: AbortSignal
  /** Doorward's. */
  readonly homeFolder: string
  /** The folder with the code of the event, where its rule has a workspace. */
  readonly workspace?: Question['workspace']
  readonly confined?: Question['confined']
  readonly used?: Question['used']
  readonly most?: Question['most']
  readonly session?: Question['session']
  /** Identifies the event. */
  readonly variables?: Readonly<Record<string, string>>
}

export type Program = {
  readonly argv: readonly string[]
  /** `~` allowed; without it an empty folder that is removed afterwards. */
  readonly cwd: string | undefined
  /** `env` of the agent's entry. */
  readonly env: Readonly<Record<string, string>>
  /** Names of our own variables that it gets besides the usual ones. */
  readonly passed?: readonly string[] | undefined
  /** Variables that doorward sets; those of the entry override them. */
  readonly set?: Readonly<Record<string, string>> | undefined
  /** Whether it gets our variables of proxies and certificates; by default it does. */
  readonly proxyEnv?: boolean | undefined
  readonly timeoutMs: number
  readonly outputLimitBytes: number
  /** Without it the program can reach what you can. */
  readonly sandbox?: SandboxWish | undefined
  /** A folder for temporary files and the program's configuration, removed with its content. */
  readonly ownFolder?: {
    readonly parent: string
    readonly prepare: (request: Omit<HomeRequest, 'level'>) => Promise<OwnHome>
    /** Called before the folder is removed, however the program ended. */
    readonly finish?: () => Promise<void>
  }
  /** The command that installs it. */
  readonly install?: string
  readonly steps?: ProgramSteps | undefined
}

/** Commands of the same program before and after a run, in the same place and without a prompt. */
export type ProgramSteps = {
  readonly before: () => readonly string[] | undefined
  readonly after: (result: ProcessResult) => readonly string[] | undefined
  /** Called with the result of the one after the run. */
  readonly ended: (result: ProcessResult) => void
}

const stepMs = 60_000

/** The result of a program that exited on its own. */
export type ProgramResult = ProcessResult & {
  /** A note about the run for the owner. */
  readonly note?: string | undefined
  /** The program's words as an event may show them: plain text without a token or an `env:` value. */
  readonly redact: (text: string) => string
}

/**
 * Runs a program until it exits: no shell, prompt on standard input, a clean environment with the tokens
 * that its entry names. Throws `agent-not-found`, `agent-timeout`, `agent-stopped`, or the reason why
 * there is no token.
 */
export const runProgram = async (
  program: Program,
  prompt: string,
  context: RunContext,
): Promise<ProgramResult> => {
  const { env, run, getToken, signal } = context
  const tokens = new Map<string, string>()
  for (const provider of getProviders(program.env))
    tokens.set(provider, await getToken(provider, program.timeoutMs))
  const { ownFolder } = program
  const network = program.proxyEnv === false ? {} : networkVariables(env)
  const needsFolder = Boolean(ownFolder ?? program.sandbox) || program.cwd === undefined
  const folder = needsFolder ? await makeAgentFolder(ownFolder?.parent ?? tmpdir()) : undefined
  let closing: readonly ((() => void) | undefined)[] = []
  try {
    const made = await makeRun(program, context, { tokens, network, folder })
    const { environment, cwd, own } = made
    const confined: Confined =
      folder === undefined ? made : await confineRun(program, context, { ...made, network, folder })
    const { note, sandbox = null, way } = confined
    closing = [way?.close, confined.bounds?.group.close]
    if (own?.startsBare !== undefined && sandbox === null)
      throw toAgentError(
        'agent-failed',
        `${program.argv[0]} was not run: it would load ${own.startsBare}`,
        {
          hint: 'with sandbox: required it runs without the plugins of the project',
        },
      )
    context.confined?.(sandbox)
    const { timeoutMs, outputLimitBytes } = program
    const place = { cwd, outputLimitBytes, signal }
    const toStep = { ...made, network, folder, place }
    await runStep(program, context, toStep, program.steps?.before())
    const result = await run({
      ...place,
      argv: confined.argv,
      filter: confined.filter,
      listeners: way?.listeners,
      bounds: confined.bounds,
      env: { ...environment, ...way?.variables },
      input: prompt,
      timeoutMs,
    })
    const refused = way?.refused() ?? []
    if (sandbox && refused.length > 0) context.confined?.({ ...sandbox, refused: [...refused] })
    const next = result.reason === 'exit' ? program.steps?.after(result) : undefined
    const after = await runStep(program, context, toStep, next)
    if (after) program.steps?.ended(after)
    // A program that prints its environment when it fails must not bring a secret into an event.
    const secrets = new Map([
      ...proxyPasswords(network),
      ...collectSecrets(env, program.env, tokens),
    ])
    const redact = (text: string) => hideSecrets(toPlainText(text).trim(), secrets)
    if (confined.bounds) requireWithin(program, { ...result, redact }, confined.bounds)
    if (result.reason !== 'exit') throw toStopError(program, { ...result, redact })
    if (confined.filter && isSandboxFault(result))
      throw toAgentError(
        'sandbox-unavailable',
        `the sandbox of ${program.argv[0]} could not be made`,
        {
          words: getLastLines({ ...result, redact }),
        },
      )
    return { ...result, note, redact }
  } catch (error) {
    throw error instanceof DoorwardError ? error : toStartError(program, error)
  } finally {
    for (const close of closing) close?.()
    await ownFolder?.finish?.()
    if (folder !== undefined) await removeFolder(folder).catch(() => undefined)
  }
}

/** Runs another command of the program in the place of a run. */
const runStep = async (
  program: Program,
  context: RunContext,
  {
    place,
    folder,
    ...made
  }: MadeRun & {
    readonly network: Parts['network']
    readonly folder: string | undefined
    readonly place: Pick<ProcessOptions, 'cwd' | 'outputLimitBytes' | 'signal'>
  },
  argv: readonly string[] | undefined,
): Promise<ProcessResult | undefined> => {
  if (argv === undefined || folder === undefined) return undefined
  const { way, ...confined } = await confineRun(program, context, { ...made, argv, folder })
  try {
    return await context.run({
      ...place,
      argv: confined.argv,
      filter: confined.filter,
      listeners: way?.listeners,
      bounds: confined.bounds,
      env: { ...made.environment, ...way?.variables },
      input: '',
      timeoutMs: Math.min(program.timeoutMs, stepMs),
    })
  } finally {
    way?.close()
    confined.bounds?.group.close()
  }
}

type Parts = {
  readonly tokens: ReadonlyMap<string, string>
  readonly network: Readonly<Record<string, string>>
  readonly folder: string | undefined
}

type MadeRun = {
  readonly argv: readonly string[]
  readonly cwd: string
  readonly environment: Readonly<Record<string, string>>
  readonly own: OwnHome | undefined
}

/** The arguments, folder and variables of a run, with a configuration of its own. */
const makeRun = async (
  program: Program,
  { env, variables, homeFolder, workspace }: RunContext,
  { tokens, network, folder }: Parts,
): Promise<MadeRun> => {
  const { argv, ownFolder, passed } = program
  const folders = ownFolder && folder !== undefined ? await makeFolders(folder) : {}
  const cwd = resolve(homeFolder, workspace?.path ?? getWorkingFolder(program, folder))
  const fault = toFolderError({ argv, cwd })
  if (fault) throw fault
  const set = { ...noLogin, ...network, ...variables, ...program.set, ...folders }
  const clean = cleanEnvironment(env, program.env, tokens, { passed, set })
  const own =
    folder === undefined ? undefined : await ownFolder?.prepare({ folder, cwd, env: clean })
  return {
    // Those of the entry come later and win.
    argv: [...argv.slice(0, 1), ...(own?.args ?? []), ...argv.slice(1)],
    cwd: own?.cwd ?? cwd,
    environment: { ...clean, ...own?.variables },
    own,
  }
}

const confineRun = async (
  program: Program,
  { env, homeFolder }: RunContext,
  {
    argv,
    cwd,
    environment,
    own,
    network,
    folder,
  }: MadeRun & {
    readonly network: Parts['network']
    readonly folder: string
  },
): Promise<Confined> =>
  program.sandbox
    ? confine(
        program.sandbox,
        {
          argv,
          cwd,
          env: environment,
          own: program.env,
          values: [...Object.keys({ ...program.env, ...network }), eventFileVariable].flatMap(
            (name) => environment[name] ?? [],
          ),
          folder,
          hidden: own?.hidden ?? [],
          doorwardHome: homeFolder,
        },
        env,
      )
    : { argv }

/** The last lines of standard error, as an event may show them. */
export const getLastLines = ({ stderr, redact }: ProgramResult): string =>
  redact(stderr.toString('utf8')).split('\n').slice(-maxStderrLines).join('\n')

/** For a message: `exited with code 3`. */
export const describeExit = ({ exitCode, exitSignal }: ProcessResult): string =>
  exitCode === null ? `was killed by ${exitSignal ?? 'a signal'}` : `exited with code ${exitCode}`

/**
 * Node's pipes are sockets, which Bash takes for a remote login: its `-c` would first read the owner's .bashrc,
 * which takes a tenth of a second and may print. A shell inside of a shell does not.
 */
const noLogin = { SHLVL: '1' }

const makeFolders = async (folder: string): Promise<Readonly<Record<string, string>>> => {
  await mkdir(join(folder, 'work'), { mode: 0o700 })
  const temporary = join(folder, 'tmp')
  await mkdir(temporary, { mode: 0o700 })
  return { TMPDIR: temporary, TEMP: temporary, TMP: temporary }
}

const getWorkingFolder = ({ cwd, ownFolder }: Program, folder: string | undefined): string => {
  if (cwd !== undefined) return expandTilde(cwd)
  return ownFolder ? join(folder ?? '', 'work') : (folder ?? '')
}

/** Bubblewrap, and what listens in its network, exit so before the program starts. */
const isSandboxFault = ({ exitCode, stderr }: ProcessResult): boolean =>
  (exitCode === 1 && stderr.subarray(0, 7).toString() === 'bwrap: ') ||
  (exitCode === 125 && stderr.subarray(0, 9).toString() === 'network: ')

const limitWords = {
  memory: 'took more memory than its limit',
  processes: 'started more processes than its limit',
  disk: 'wrote more than its limit',
}

/** Throws `limit-reached`, with the limit that ended the run. */
const requireWithin = ({ argv }: Program, result: ProgramResult, { group }: Bounds): void => {
  const limit = findLimit(result, group)
  if (!limit) return
  throw toAgentError('limit-reached', `${argv[0]} ${limitWords[limit]} and was ended`, {
    words: getLastLines(result),
    hint: `raise ${limit} in limits of its agent: doorward config edit agents`,
  })
}

const findLimit = (
  { reason, exitCode, exitSignal }: ProgramResult,
  group: Bounds['group'],
): ReachedLimit | undefined => {
  if (reason !== 'exit') return reason === 'timeout' || reason === 'stopped' ? undefined : reason
  // SIGXFSZ, or the status by which a shell and bubblewrap pass it on: 128 and its number.
  if (exitSignal === 'SIGXFSZ' || exitCode === 128 + constants.signals.SIGXFSZ) return 'disk'
  return exitCode !== 0 && group.hasRefused() ? 'processes' : undefined
}

const toStopError = ({ argv, timeoutMs }: Program, result: ProgramResult): DoorwardError => {
  const [name] = argv
  const words = getLastLines(result)
  if (result.reason === 'stopped')
    return toAgentError('agent-stopped', `${name} was stopped because the daemon stops`, { words })
  const message = `${name} took longer than ${Math.round(timeoutMs / 100) / 10} s and was stopped`
  return toAgentError('agent-timeout', message, { words })
}

const toStartError = ({ argv, install }: Program, error: unknown): DoorwardError => {
  const name = argv[0] ?? ''
  const code = systemCode(error)
  const hint = install && `install it with: ${install}; if it is installed: doorward doctor`
  // Without a slash it was searched on PATH.
  const isPath = /[\\/]/.test(name)
  const reasons: Record<string, string> = {
    // Also for a script whose first line names a missing program, or ends with a CR.
    ENOENT: `there is no such program${isPath ? ', or not the one that its first line names' : " on the daemon's PATH"}`,
    ENOTDIR: 'a part of its path is a file',
    // PATH may have folders that we cannot read.
    EACCES: isPath
      ? 'it is not executable'
      : "there is no such program on the daemon's PATH that may be run",
    E2BIG: 'its arguments are too long',
    EMFILE: 'too many files are open',
    EAGAIN: 'too many processes run',
  }
  const message = `cannot start ${name}: ${(code && reasons[code]) ?? code ?? 'unknown reason'}`
  return toAgentError('agent-not-found', message, { cause: error, hint })
}
