import { tmpdir } from 'node:os'
import { toRunLimit } from '../../shared/agents/budget.ts'
import { agentClis } from '../../shared/agents/clis.ts'
import type { CliAgent } from '../../shared/agents/schema.ts'
import { getToolLevel } from '../../shared/agents/tools.ts'
import type { Usage } from '../../shared/api/api.ts'
import type { DoorwardError } from '../../shared/errors.ts'
import { type Answer, cutTo, toAgentError } from './answer.ts'
import { type CliOutput, NoAnswer } from './cli-output.ts'
import { buildArgv, presets } from './cli-presets.ts'
import { type LoginFile, readLoginFile } from './logins/login-file.ts'
import {
  copyLogin,
  locateLogin,
  type LoginPlace,
  LoginRenewals,
  usesLogin,
  watchCopy,
} from './logins/logins.ts'
import type { ProcessResult } from './process.ts'
import {
  describeExit,
  getLastLines,
  type Program,
  type ProgramResult,
  type RunContext,
  runProgram,
} from './program.ts'
import { SpendingWatch } from './spending-watch.ts'
import { type SandboxWish, toSandboxWish } from './sandbox/sandbox.ts'
import { findSessionProgram, SessionRun } from './sessions/session-run.ts'
import type { Transcript } from './sessions/transcript.ts'
import { readCliUsage, readTotals } from './usage.ts'
import { getMemoryFolder } from './workspace.ts'

/** For the JSON around an answer: figures, and the output of tools. */
const jsonOverheadBytes = 16 * 1024 * 1024
const maxReasonLength = 600

const renewals = new LoginRenewals()
const renewalMs = 60_000

/**
 * Runs an agent program that doorward knows, with the right flags and a temporary folder of its own, and
 * reads the answer from its output. Throws as `runProgram` does, and `agent-failed` with the program's
 * own words in the local detail.
 */
export const runCli = async (
  agent: CliAgent,
  prompt: string,
  context: RunContext,
): Promise<Answer> => {
  const { session: turn } = context
  const how = turn && findSessionProgram(agent, usesLogin)
  if (!turn || !how) return runOnce(agent, prompt, context)
  if ('why' in how) {
    turn.refuse(how.why)
    return runOnce(agent, prompt, context)
  }
  const toRun = (earlier?: Transcript) => new SessionRun(agent.kind, how, turn, earlier)
  const { earlier } = turn
  if (!earlier) return runOnce(agent, prompt, context, toRun())
  try {
    return await runOnce(agent, prompt, context, toRun(earlier))
  } catch (error) {
    if (!(error instanceof SessionRefused)) throw error
    turn.beginAnew(`${agentClis[agent.kind].program} could not go on with it`)
    return runOnce(agent, prompt, context, toRun())
  }
}

/** A program did not go on with its session: no model has answered. */
class SessionRefused extends Error {
  override readonly name = 'SessionRefused'
}

const runOnce = async (
  agent: CliAgent,
  prompt: string,
  context: RunContext,
  session?: SessionRun,
): Promise<Answer> => {
  const totals = session?.earlier && (session.earlier.totals ?? {})
  let used: Usage | undefined
  let login: LoginPlace | undefined
  const sandbox = toSandboxWish(agent, context)
  const program = toProgram(agent, { sandbox, most: context.most, session }, async (place, env) => {
    login = place
    if (agent.network !== 'off' && usesLogin(env))
      await renewals.renew(place, agent.timeout, async (file) =>
        renewLogin(agent, sandbox, context, file),
      )
    await copyLogin(place)
  })
  const watch = watchSpending(agent, context)
  const result = await runProgram(program, prompt, {
    ...context,
    run: async (request) => {
      const ended = await context.run(watch ? watched(request, watch) : request)
      // Whatever the end was: what was used until then has its price.
      const output = toOutput(ended)
      const usage = readCliUsage(agent, output, totals)
      if (usage) context.used?.(usage)
      used ??= usage
      session?.noteEnd(output)
      return ended
    },
  }).catch((error: unknown) => {
    throw watch?.signal.aborted && !context.signal.aborted ? toBudgetError(agent) : error
  })
  try {
    const output = toOutput(result)
    const text = presets[agent.kind].read(output)
    if (context.session) session?.report(context.session, readTotals(agent.kind, output))
    const { note } = result
    return { ...cutTo(text, agent.output_limit), ...(note !== undefined && { note }) }
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    const words = (result.redact(error.message) || getLastLines(result)).slice(0, maxReasonLength)
    if (login && isAboutLogin(words)) renewals.noteRefused(login)
    else if (session?.earlier && error.code === 'agent-failed' && !used?.outputTokens)
      throw new SessionRefused(undefined, { cause: error })
    throw toFailure(agent, result, words, error.code)
  }
}

/** Undefined where the program has a flag for it, or says its cost at its end. */
const watchSpending = (agent: CliAgent, { most }: RunContext): SpendingWatch | undefined => {
  const run = agent.kind === 'opencode' ? toRunLimit([agent.budget, { run: most }]) : undefined
  return run && new SpendingWatch(run.usd)
}

const watched = (
  request: Parameters<RunContext['run']>[0],
  watch: SpendingWatch,
): Parameters<RunContext['run']>[0] => ({
  ...request,
  onOutput: watch.read,
  signal: AbortSignal.any([request.signal, watch.signal]),
})

const toOutput = ({ stdout, stderr, exitCode }: ProcessResult): CliOutput => ({
  stdout: stdout.toString('utf8'),
  stderr: stderr.toString('utf8'),
  exitCode,
})

/**
 * Runs the program of an agent with this login file, words of ours and no tools, so that it renews its login;
 * returns the file that it leaves. It is stopped then. Whatever else comes of that run, the one that follows shows.
 */
const renewLogin = async (
  agent: CliAgent,
  sandbox: SandboxWish | undefined,
  context: RunContext,
  file: LoginFile,
): Promise<LoginFile | undefined> => {
  const plain: CliAgent = {
    ...agent,
    args: [],
    tools: 'none',
    cwd: undefined,
    timeout: renewalMs,
  }
  const control = new AbortController()
  const stop = () => control.abort('immediately')
  // Cancelling the event must not lose the login.
  const { signal } = control
  const clean = { ...context, workspace: undefined, variables: {}, signal, confined: undefined }
  let renewed: LoginFile | undefined
  let login: LoginPlace | undefined
  const program = toProgram(plain, { sandbox, most: undefined }, async (place) => {
    login = place
    await copyLogin(place, file)
    watchCopy(place, signal, stop)
  })
  const finish = async () => {
    stop()
    if (login) renewed = await readLoginFile(login.copy, true)
  }
  const ownFolder = program.ownFolder && { ...program.ownFolder, finish }
  await runProgram({ ...program, ownFolder }, 'Answer with the word ok.', clean).catch(
    () => undefined,
  )
  return renewed
}

/** `withLogin` makes the copy of the login, where the program gets one. */
const toProgram = (
  agent: CliAgent,
  {
    sandbox,
    most,
    session,
  }: {
    sandbox: SandboxWish | undefined
    most: RunContext['most']
    session?: SessionRun | undefined
  },
  withLogin: (place: LoginPlace, env: Readonly<Record<string, string>>) => Promise<void>,
): Program => {
  const { kind } = agent
  const { env, passed, prepare, canUse } = presets[kind]
  const level = getToolLevel(agent)
  return {
    argv: buildArgv(agent, most, session?.flags),
    cwd: agent.cwd,
    env: agent.env ?? {},
    passed,
    set: env?.(level),
    proxyEnv: agent.proxy_env,
    timeoutMs: agent.timeout,
    // JSON may write a character as six: \u001b.
    outputLimitBytes: agent.output_limit * 6 + jsonOverheadBytes,
    install: agentClis[kind].install,
    sandbox,
    steps: session?.steps,
    ownFolder: {
      parent: prepare ? getMemoryFolder(canUse) : tmpdir(),
      prepare: async (request) => {
        const own = (await prepare?.({ ...request, level })) ?? { variables: {} }
        // A session of Claude Code is beside its login, in a folder that is removed.
        const isOwn = sandbox !== undefined || (session !== undefined && kind === 'claude')
        const place = locateLogin(kind, request, own.variables, isOwn)
        if (place) await withLogin(place, request.env)
        const { folder, cwd } = request
        const carried = await session?.prepare({ folder, cwd: own.cwd ?? cwd })
        return {
          ...own,
          args: [...(own.args ?? []), ...(carried?.args ?? [])],
          variables: { ...own.variables, ...place?.variables, ...carried?.variables },
        }
      },
      finish: async () => session?.finish(),
    },
  }
}

const isAboutLogin = (words: string): boolean =>
  /\b40[13]\b|authenticat|unauthori[sz]ed|api[ _-]?key|(log(ged)?|sign) ?in|credential|token refresh/i.test(
    words,
  )

const toFailure = (
  { kind }: CliAgent,
  result: ProgramResult,
  words: string,
  code: NoAnswer['code'],
): DoorwardError => {
  const { program } = agentClis[kind]
  if (code === 'budget-reached') return toBudgetError({ kind }, words)
  const message =
    result.exitCode === 0
      ? `${program} exited without a readable answer`
      : `${program} ${describeExit(result)}`
  const hint = isAboutLogin(words) ? presets[kind].login : undefined
  return toAgentError('agent-failed', message, { words, hint })
}

const toBudgetError = ({ kind }: Pick<CliAgent, 'kind'>, words = ''): DoorwardError => {
  const hint = 'raise run in the budget of its rule, its agent or gateway.yaml, or ask for less'
  const ended = `${agentClis[kind].program} ended the run at its budget`
  return toAgentError('budget-reached', ended, { words, hint })
}
