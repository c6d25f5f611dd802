import { tmpdir } from 'node:os'
import { agentClis } from '../../shared/agents/clis.ts'
import type { CliAgent } from '../../shared/agents/schema.ts'
import { getToolLevel } from '../../shared/agents/tools.ts'
import type { DoorwardError } from '../../shared/errors.ts'
import { type Answer, cutTo, toAgentError } from './answer.ts'
import { NoAnswer } from './cli-output.ts'
import { buildArgv, presets } from './cli-presets.ts'
import {
  describeExit,
  getLastLines,
  type ProgramResult,
  type RunContext,
  runProgram,
} from './program.ts'
import { toSandboxWish } from './sandbox/sandbox.ts'
import { getMemoryFolder } from './workspace.ts'

/** For the JSON around an answer: figures, and the output of tools. */
const jsonOverheadBytes = 16 * 1024 * 1024
const maxReasonLength = 600

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
  const { kind } = agent
  const { env, passed, prepare, canUse, read } = presets[kind]
  const level = getToolLevel(agent)
  const result = await runProgram(
    {
      argv: buildArgv(agent),
      cwd: agent.cwd,
      env: agent.env ?? {},
      passed,
      set: env?.(level),
      proxyEnv: agent.proxy_env,
      timeoutMs: agent.timeout,
      // JSON may write a character as six: \u001b.
      outputLimitBytes: agent.output_limit * 6 + jsonOverheadBytes,
      install: agentClis[kind].install,
      sandbox: toSandboxWish(agent, context),
      ownFolder: {
        parent: prepare ? getMemoryFolder(canUse) : tmpdir(),
        prepare: async (request) => (await prepare?.({ ...request, level })) ?? { variables: {} },
      },
    },
    prompt,
    context,
  )
  try {
    const text = read({
      stdout: result.stdout.toString('utf8'),
      stderr: result.stderr.toString('utf8'),
      exitCode: result.exitCode,
    })
    const { note } = result
    return { ...cutTo(text, agent.output_limit), ...(note !== undefined && { note }) }
  } catch (error) {
    if (!(error instanceof NoAnswer)) throw error
    throw toFailure(agent, result, error.message)
  }
}

const toFailure = ({ kind }: CliAgent, result: ProgramResult, words: string): DoorwardError => {
  const { program } = agentClis[kind]
  const message =
    result.exitCode === 0
      ? `${program} exited without a readable answer`
      : `${program} ${describeExit(result)}`
  const shown = (result.redact(words) || getLastLines(result)).slice(0, maxReasonLength)
  const aboutLogin = /\b40[13]\b|authenticat|unauthori[sz]ed|api[ _-]?key|log(ged)? ?in|credential/i
  const hint = aboutLogin.test(shown) ? presets[kind].login : undefined
  return toAgentError('agent-failed', message, { words: shown, hint })
}
