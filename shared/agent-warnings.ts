import { agentVariables } from './agent-variables.ts'
import { permissionOf } from './agent-permissions.ts'
import type { Agent } from './config.ts'
import { secretsOf } from './environment.ts'
import type { Config } from './load-config.ts'
import { sentKinds } from './target-address.ts'
import { unsetHint } from './unset-hint.ts'
import { usedVariables } from './used-variables.ts'
import type { Warning } from './warning.ts'

/** Variables that agents of enabled webhooks name, and that are not there. */
export const agentKeyWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] => {
  const used = new Map(
    config.webhooks
      .filter(({ enabled }) => enabled)
      .map(({ agentName, agent }) => [agentName, agent]),
  )
  return [...used].flatMap(([agentName, agent]): Warning[] => {
    const unset = agentVariables(agent).filter((name) => secretsOf([name], env).length === 0)
    if (unset.length === 0) return []
    return [
      {
        code: 'agent-key-unset',
        detail: `agent ${agentName}: ${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset or empty; ${withoutVariable(agent)}`,
        hint: unsetHint(unset, env, usedVariables(config)),
      },
    ]
  })
}

/** What an agent does whose variable is unset. */
export const withoutVariable = ({ kind }: Pick<Agent, 'kind'>): string =>
  kind === 'openai' || kind === 'http' ? 'it cannot be asked' : 'it runs without'

/** Text of strangers, an agent that may act, and a way out of the machine: together they are a way in. */
export const riskWarnings = (config: Config): Warning[] =>
  config.webhooks.flatMap((webhook): Warning[] => {
    const { path, enabled, acceptsRisk, agentName, agent, prompt, targets } = webhook
    const permission = permissionOf(agent)
    const hasEventText = prompt.parts.some((part) => typeof part !== 'string')
    const leaving = targets.filter(({ kind }) => (sentKinds as readonly string[]).includes(kind))
    if (!enabled || acceptsRisk || !hasEventText || permission === undefined) return []
    if (leaving.length === 0) return []
    const where = leaving.map(({ text }) => text).join(', ')
    return [
      {
        code: 'dangerous-combination',
        detail: `webhook ${path} gives text that strangers can write to agent ${agentName}, which may change files or run programs on its own (${permission}), and sends its answer out of this machine (${where}): whoever writes that text can make it act for them and send them what it finds`,
        hint: `take ${permission} from the agent, deliver to log, notify:desktop or file:, or leave {{event…}} out of the prompt; accept_risk: true beside the webhook silences this`,
      },
    ]
  })
