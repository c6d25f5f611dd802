import type { Agent } from '../../shared/config/schema.ts'
import { type Answer, cutTo } from './answer.ts'
import { runCli } from './cli.ts'
import { runCommand } from './command.ts'
import { type Question, askHttp } from './http.ts'
import type { RunProcess } from './noted-run.ts'
import { askOpenAi } from './openai.ts'
import type { TokenOf } from './program.ts'

/** Asks an agent. The signal ends it when the daemon cannot wait any longer. */
export type Invoke = (
  name: string,
  agent: Agent,
  question: Question,
  signal: AbortSignal,
) => Promise<Answer>

export type InvokeParts = {
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
