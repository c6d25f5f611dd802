import { mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { expandTilde } from '../../shared/home/home.ts'
import { toPlainText } from '../../shared/text.ts'
import { cleanEnvironment, hideSecrets, providersIn, secretsIn } from './environment.ts'
import { makeAgentFolder } from './workspace.ts'
import type { RunProcess } from './orphans.ts'
import type { Ended } from './process.ts'

const stderrLines = 5

/** Gives an access token, or throws why there is none. */
export type TokenOf = (provider: string, minValidityMs: number) => Promise<string>

export type Surroundings = {
  /** Ours, of which the agent gets a part. */
  readonly env: NodeJS.ProcessEnv
  readonly run: RunProcess
  /** A token for `oauth:<provider>` that is good for so many milliseconds, if the provider gives such. */
  readonly tokenOf: TokenOf
  readonly signal: AbortSignal
}

export type Program = {
  readonly argv: readonly string[]
  /** `~` allowed; without it an empty folder that is removed afterwards. */
  readonly cwd: string | undefined
  /** What the entry of the agent adds to a clean environment. */
  readonly env: Readonly<Record<string, string>>
  /** Names of variables of ours that it gets besides the usual ones. */
  readonly passed?: readonly string[]
  /** Variables that doorward sets, which those of the entry win over. */
  readonly set?: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly outputLimitBytes: number
  /** A folder of its own for temporary files, removed with all that is in it; more variables may come with it. */
  readonly ownFolder?: {
    readonly parent: string
    readonly prepare: (folder: string) => Promise<Readonly<Record<string, string>>>
  }
  /** What to do where there is no such program. */
  readonly install?: string
}

/** A program that ended by itself, with its output and what may be told of it. */
export type Finished = Ended & {
  /** A text of the program's as an event may show it: plain, no token and no value of `env:` in it. */
  readonly showable: (text: string) => string
}

/**
 * Runs a program to its own end: no shell, the prompt on its standard input, a clean environment with
 * the tokens that its entry names, its own process group. Throws what keeps a token from being given,
 * `agent-not-found`, `agent-timeout` or `agent-stopped`.
 */
export const runProgram = async (
  program: Program,
  prompt: string,
  { env, run, tokenOf, signal }: Surroundings,
): Promise<Finished> => {
  // Good for as long as the program may run.
  const tokens = await tokensFor(program.env, (provider) => tokenOf(provider, program.timeoutMs))
  const { ownFolder } = program
  const needsFolder = ownFolder !== undefined || program.cwd === undefined
  const folder = needsFolder ? await makeAgentFolder(ownFolder?.parent ?? tmpdir()) : undefined
  try {
    const places = ownFolder && folder !== undefined ? await makePlaces(folder, ownFolder) : {}
    const ended = await run({
      argv: program.argv,
      cwd: workingFolder(program, folder),
      env: cleanEnvironment(env, program.env, tokens, {
        passed: program.passed ?? [],
        set: { ...program.set, ...places },
      }),
      input: prompt,
      timeoutMs: program.timeoutMs,
      outputLimitBytes: program.outputLimitBytes,
      signal,
      folder,
    })
    // A program that prints its environment when it fails must not bring a secret into an event.
    const secrets = secretsIn(env, program.env, tokens)
    const showable = (text: string) => hideSecrets(toPlainText(text).trim(), secrets)
    throwUnlessFinished(program, ended, showable)
    return { ...ended, showable }
  } catch (error) {
    throw error instanceof DoorwardError ? error : notStarted(program, error)
  } finally {
    if (folder !== undefined)
      await rm(folder, { recursive: true, force: true }).catch(() => undefined)
  }
}

/** The last lines of what a program said on standard error, as they may be shown. */
export const lastLines = ({ stderr, showable }: Pick<Finished, 'stderr' | 'showable'>): string =>
  showable(stderr.toString('utf8')).split('\n').slice(-stderrLines).join('\n')

/** How a program ended that did not end well: `ended with exit code 3`. */
export const describeExit = ({ exitCode, exitSignal }: Ended): string =>
  exitCode === null
    ? `was ended by ${exitSignal ?? 'a signal'}`
    : `ended with exit code ${exitCode}`

const makePlaces = async (
  folder: string,
  { prepare }: NonNullable<Program['ownFolder']>,
): Promise<Readonly<Record<string, string>>> => {
  await mkdir(join(folder, 'work'), { mode: 0o700 })
  const temporary = join(folder, 'tmp')
  await mkdir(temporary, { mode: 0o700 })
  return { TMPDIR: temporary, TEMP: temporary, TMP: temporary, ...(await prepare(folder)) }
}

const workingFolder = ({ cwd, ownFolder }: Program, folder: string | undefined): string => {
  if (cwd !== undefined) return expandTilde(cwd)
  return ownFolder ? join(folder ?? '', 'work') : (folder ?? '')
}

const tokensFor = async (
  env: Readonly<Record<string, string>>,
  give: (provider: string) => Promise<string>,
): Promise<ReadonlyMap<string, string>> => {
  const tokens = new Map<string, string>()
  for (const provider of providersIn(env)) tokens.set(provider, await give(provider))
  return tokens
}

const throwUnlessFinished = (
  { argv, timeoutMs }: Program,
  ended: Ended,
  showable: Finished['showable'],
): void => {
  if (ended.reason === 'exit') return
  const [name] = argv
  const last = lastLines({ stderr: ended.stderr, showable })
  const [code, message] =
    ended.reason === 'timeout'
      ? ([
          'agent-timeout',
          `${name} took longer than ${timeoutMs / 1000} s and was stopped`,
        ] as const)
      : (['agent-stopped', `${name} was stopped because the daemon stops`] as const)
  throw new DoorwardError(code, message, {
    localDetail: last === '' ? message : `${message}: ${last}`,
  })
}

const notStarted = ({ argv, cwd, install }: Program, error: unknown): DoorwardError => {
  const name = argv[0] ?? ''
  const code = systemCode(error)
  const hint =
    install === undefined
      ? undefined
      : `install it with: ${install}; if it is installed: doorward doctor`
  const failed = (message: string) =>
    new DoorwardError('agent-not-found', message, {
      cause: error,
      hint,
      localDetail: hint === undefined ? message : `${message}; ${hint}`,
    })
  // Without a slash it was looked up.
  const isPath = /[\\/]/.test(name)
  const orCwd = (is: string) => (cwd === undefined ? '' : `, or its cwd ${cwd} ${is}`)
  const words: Record<string, string> = {
    // A script is told so too whose first line names what is not there, or ends with a CR.
    ENOENT: `there is no such program${isPath ? ', or not the one that its first line names' : " on the daemon's PATH"}${orCwd('does not exist')}`,
    ENOTDIR:
      cwd !== undefined && !isPath
        ? `its cwd ${cwd} is a file`
        : `a part of its path is a file${orCwd('is one')}`,
    // PATH can name folders that are closed to us.
    EACCES: isPath
      ? 'it is not executable'
      : "there is no such program on the daemon's PATH that may be run",
    E2BIG: 'its arguments are too long',
    EMFILE: 'too many files are open',
    EAGAIN: 'too many processes run',
  }
  return failed(`cannot start ${name}: ${(code && words[code]) ?? code ?? 'unknown reason'}`)
}
