import { isCliKind } from '../../shared/agents/clis.ts'
import type { CommandAgent } from '../../shared/agents/schema.ts'
import type { Agent } from '../../shared/config/schema.ts'
import { type Answer, cutText, cutTo, toAgentError } from './answer.ts'
import { runCli } from './cli-agent.ts'
import { askHttp, type Question } from './http-agent.ts'
import { askOpenAi } from './openai-agent.ts'
import type { TokenRequest } from '../oauth/dependencies.ts'
import type { RunProcess } from './orphans.ts'
import { withEventFile } from './workspace.ts'
import {
  describeExit,
  eventFileVariable,
  getLastLines,
  type RunContext,
  runProgram,
} from './program.ts'
import { toSandboxWish } from './sandbox/sandbox.ts'

/** Asks an agent. The signal stops it when the daemon stops or the event is cancelled. */
export type Invoke = (
  name: string,
  agent: Agent,
  question: Question,
  signal: AbortSignal,
) => Promise<Answer>

type InvokeParts = {
  readonly env: NodeJS.ProcessEnv
  readonly homeFolder: string
  readonly run: RunProcess
  /** Returns an access token of the broker; `asker` appears in the log. */
  readonly access: (
    provider: string,
    request: Pick<TokenRequest, 'minValidityMs' | 'repository' | 'permissions' | 'asker'>,
  ) => Promise<{ readonly accessToken: string }>
}

/** Gives the prompt to an agent of any kind; throws an `agent-…` error when there is no answer. */
export const createInvoke =
  ({ env, homeFolder, run, access }: InvokeParts): Invoke =>
  async (name, agent, question, signal) => {
    const { prompt, workspace, confined, used, most, session } = question
    const ofBot = {
      repository: workspace?.repository,
      ...('permissions' in agent && { permissions: agent.permissions }),
    }
    const getToken: RunContext['getToken'] = async (provider, minValidityMs) =>
      (await access(provider, { ...ofBot, minValidityMs, asker: `agent ${name}` })).accessToken
    const variables = toVariables(question)
    const context = {
      env,
      homeFolder,
      run,
      getToken,
      signal,
      variables,
      workspace,
      confined,
      used,
      most,
      session,
    }
    if (!isCliKind(agent.kind))
      session?.refuse(`an agent of kind ${agent.kind} has no conversations`)
    switch (agent.kind) {
      case 'echo':
        return cutTo(prompt, agent.output_limit)
      case 'command':
        return withFile(question, async (file) =>
          runCommand(agent, prompt, withFileVariable(context, file)),
        )
      case 'openai':
        return askOpenAi(agent, question, env, signal)
      case 'http':
        return withFile(question, async (file) => askHttp(agent, question, env, signal, file))
      default:
        return runCli(agent, prompt, context)
    }
  }

/** Calls with the path of a file with the payload, for an agent that has `event_file`. */
const withFile = async (
  { payload }: Question,
  ask: (file?: string) => Promise<Answer>,
): Promise<Answer> => (payload ? withEventFile(payload, ask) : ask())

const withFileVariable = (context: RunContext, file: string | undefined): RunContext =>
  file === undefined
    ? context
    : { ...context, variables: { ...context.variables, [eventFileVariable]: file } }

/** Variables that identify the event to a program. */
const toVariables = ({ eventId, webhook, rule, deliveryId }: Question): Record<string, string> => ({
  DOORWARD_EVENT_ID: eventId,
  DOORWARD_WEBHOOK: webhook,
  ...(rule !== undefined && { DOORWARD_RULE: rule }),
  ...(deliveryId !== undefined && { DOORWARD_DELIVERY_ID: deliveryId }),
})

/**
 * Runs the program of a `command` agent; its standard output is the answer. Throws as `runProgram`
 * does, and `agent-failed` with exit code and last lines of standard error.
 */
export const runCommand = async (
  agent: CommandAgent,
  prompt: string,
  context: RunContext,
): Promise<Answer> => {
  const result = await runProgram(
    {
      argv: agent.command,
      cwd: agent.cwd,
      env: agent.env ?? {},
      proxyEnv: agent.proxy_env,
      timeoutMs: agent.timeout,
      outputLimitBytes: agent.output_limit,
      sandbox: toSandboxWish(agent, context),
    },
    prompt,
    context,
  )
  if (result.exitCode !== 0) {
    const message = `${agent.command[0]} ${describeExit(result)}`
    throw toAgentError('agent-failed', message, { words: getLastLines(result) })
  }
  const { note, cut, stdout } = result
  const text = cut ? cutText(stdout, agent.output_limit) : stdout.toString('utf8')
  return { text, cut, ...(note !== undefined && { note }) }
}
