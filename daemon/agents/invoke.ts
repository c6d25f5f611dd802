import type { CommandAgent } from '../../shared/config/agent-schema.ts'
import type { Agent } from '../../shared/config/schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type Answer, cutText, cutTo } from './answer.ts'
import { runCli } from './cli-agent.ts'
import { askHttp, type Question } from './http-agent.ts'
import { askOpenAi } from './openai-agent.ts'
import type { RunProcess } from './orphans.ts'
import { describeExit, lastLines, runProgram, type Surroundings, type TokenOf } from './program.ts'

/** Asks an agent. The signal ends it when the daemon cannot wait any longer. */
export type Invoke = (
  name: string,
  agent: Agent,
  question: Question,
  signal: AbortSignal,
) => Promise<Answer>

type InvokeParts = {
  readonly env: NodeJS.ProcessEnv
  readonly run: RunProcess
  /** Gives an access token of the broker to whom it names. */
  readonly access: (
    provider: string,
    request: { readonly minValidityMs: number; readonly asker: string },
  ) => Promise<{ readonly accessToken: string }>
}

/** Gives the prompt to an agent of any kind; throws an `agent-…` error when it does not answer. */
export const createInvoke =
  ({ env, run, access }: InvokeParts): Invoke =>
  async (name, agent, question, signal) => {
    const tokenOf: TokenOf = async (provider, minValidityMs) =>
      (await access(provider, { minValidityMs, asker: `agent ${name}` })).accessToken
    const { prompt } = question
    switch (agent.kind) {
      case 'echo':
        return cutTo(prompt, agent.output_limit)
      case 'command':
        return runCommand(agent, prompt, { env, run, tokenOf, signal })
      case 'claude':
      case 'codex':
      case 'gemini':
      case 'opencode':
      case 'llm':
        return runCli(agent, prompt, { env, run, tokenOf, signal })
      case 'openai':
        return askOpenAi(agent, prompt, env, signal)
      case 'http':
        return askHttp(agent, question, env, signal)
    }
  }

/**
 * Runs the program of a `command` agent; its standard output is the answer. Throws as `runProgram`
 * does, and `agent-failed` (exit code and last lines of standard error).
 */
export const runCommand = async (
  agent: CommandAgent,
  prompt: string,
  surroundings: Surroundings,
): Promise<Answer> => {
  const finished = await runProgram(
    {
      argv: agent.command,
      cwd: agent.cwd,
      env: agent.env ?? {},
      timeoutMs: agent.timeout,
      outputLimitBytes: agent.output_limit,
    },
    prompt,
    surroundings,
  )
  if (finished.exitCode !== 0) {
    const message = `${agent.command[0]} ${describeExit(finished)}`
    const last = lastLines(finished)
    throw new DoorwardError('agent-failed', message, {
      localDetail: last === '' ? message : `${message}: ${last}`,
    })
  }
  return finished.cut
    ? { text: cutText(finished.stdout, agent.output_limit), cut: true }
    : { text: finished.stdout.toString('utf8'), cut: false }
}
