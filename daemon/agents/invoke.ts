import type { Agent } from '../../shared/config.ts'
import { type Answer, cutTo } from './answer.ts'
import { runCommand } from './command.ts'
import type { NoteRun } from './leftovers.ts'

/** Runs an agent with a prompt. The signal ends it when the daemon cannot wait any longer. */
export type Invoke = (agent: Agent, prompt: string, signal: AbortSignal) => Promise<Answer>

/** Gives the prompt to an agent of any kind; throws an `agent-…` error when it does not answer. */
export const createInvoke =
  (env: NodeJS.ProcessEnv, noteRun: NoteRun): Invoke =>
  async (agent, prompt, signal) => {
    switch (agent.kind) {
      case 'echo':
        return cutTo(prompt, agent.output_limit)
      case 'command':
        return runCommand(agent, prompt, { env, noteRun, signal })
    }
  }
