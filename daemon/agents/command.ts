import { mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CommandAgent } from '../../shared/config.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { plainLines } from '../../shared/plain-text.ts'
import { cleanEnvironment, providersIn } from './clean-environment.ts'
import { type Answer, cutText } from './answer.ts'
import { type NoteRun, folderPrefix } from './leftovers.ts'
import { type Ended, runProcess } from './run-process.ts'

const stderrLines = 5

/** Gives an access token, or throws why there is none. */
export type TokenOf = (provider: string, minValidityMs: number) => Promise<string>

type Surroundings = {
  /** Ours, of which the agent gets a part. */
  readonly env: NodeJS.ProcessEnv
  readonly noteRun: NoteRun
  /** A token for `oauth:<provider>` that is good for so many milliseconds, if the provider gives such. */
  readonly tokenOf: TokenOf
  readonly signal: AbortSignal
}

/**
 * Runs the program of a `command` agent: no shell, the prompt on its standard input, a clean
 * environment with the tokens that its entry names, its own process group. Throws what keeps a token
 * from being given, `agent-not-found`, `agent-failed` (exit code and last
 * lines of standard error), `agent-timeout` or `agent-stopped`.
 */
export const runCommand = async (
  agent: CommandAgent,
  prompt: string,
  { env, noteRun, tokenOf, signal }: Surroundings,
): Promise<Answer> => {
  // Good for as long as the program may run.
  const tokens = await tokensFor(agent, (provider) => tokenOf(provider, agent.timeout))
  const folder = agent.cwd === undefined ? await mkdtemp(join(tmpdir(), folderPrefix)) : undefined
  let forget: (() => Promise<void>) | undefined
  try {
    const ended = await runProcess({
      argv: agent.command,
      cwd: folder ?? expandHome(agent.cwd ?? ''),
      env: cleanEnvironment(env, agent.env ?? {}, tokens),
      input: prompt,
      timeoutMs: agent.timeout,
      outputLimitBytes: agent.output_limit,
      signal,
      onStart: (pid) => {
        forget = noteRun(pid, folder)
      },
    })
    return answerOf(agent, ended, tokens)
  } catch (error) {
    throw error instanceof DoorwardError ? error : notStarted(agent, error)
  } finally {
    await forget?.()
    if (folder !== undefined)
      await rm(folder, { recursive: true, force: true }).catch(() => undefined)
  }
}

const tokensFor = async (
  agent: CommandAgent,
  give: (provider: string) => Promise<string>,
): Promise<ReadonlyMap<string, string>> => {
  const tokens = new Map<string, string>()
  for (const provider of providersIn(agent.env ?? {})) tokens.set(provider, await give(provider))
  return tokens
}

const answerOf = (
  agent: CommandAgent,
  ended: Ended,
  tokens: ReadonlyMap<string, string>,
): Answer => {
  const program = agent.command[0]
  const last = withoutTokens(lastLines(ended.stderr), tokens)
  const said = last === '' ? '' : `: ${last}`
  const fail = (code: 'agent-timeout' | 'agent-stopped' | 'agent-failed', message: string) =>
    new DoorwardError(code, message, { localDetail: `${message}${said}` })
  if (ended.reason === 'timeout')
    throw fail(
      'agent-timeout',
      `${program} took longer than ${agent.timeout / 1000} s and was stopped`,
    )
  if (ended.reason === 'stopped')
    throw fail('agent-stopped', `${program} was stopped because the daemon stops`)
  if (ended.exitCode !== 0)
    throw fail(
      'agent-failed',
      ended.exitCode === null
        ? `${program} was ended by ${ended.exitSignal ?? 'a signal'}`
        : `${program} ended with exit code ${ended.exitCode}`,
    )
  return ended.cut
    ? { text: cutText(ended.stdout, agent.output_limit), cut: true }
    : { text: ended.stdout.toString('utf8'), cut: false }
}

/** A program that prints its environment when it fails must not bring a token into an event. */
const withoutTokens = (text: string, tokens: ReadonlyMap<string, string>): string =>
  [...tokens].reduce(
    (clean, [provider, token]) => clean.replaceAll(token, `<token of ${provider}>`),
    text,
  )

const lastLines = (stderr: Buffer): string =>
  plainLines(stderr.toString('utf8')).trim().split('\n').slice(-stderrLines).join('\n')

const notStarted = (agent: CommandAgent, error: unknown): DoorwardError => {
  const program = agent.command[0] ?? ''
  const code = systemCode(error)
  if (code === 'ENOENT' && agent.cwd !== undefined)
    return new DoorwardError(
      'agent-not-found',
      `cannot start ${program}: it is not on PATH, or its cwd ${agent.cwd} does not exist`,
      { cause: error },
    )
  const words: Record<string, string> = {
    ENOENT: 'there is no such program on PATH',
    // Without a slash it was looked up, and PATH can name folders that are closed to us.
    EACCES: /[\\/]/.test(program)
      ? 'it is not executable'
      : 'there is no such program on PATH that may be run',
    E2BIG: 'its arguments are too long',
    EMFILE: 'too many files are open',
    EAGAIN: 'too many processes run',
  }
  return new DoorwardError(
    'agent-not-found',
    `cannot start ${program}: ${(code && words[code]) ?? code ?? 'unknown reason'}`,
    { cause: error },
  )
}

const expandHome = (path: string): string =>
  path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : path
