import { hash } from 'node:crypto'
import { z } from 'zod'
import type { Machine, StatusProblem } from '../../../shared/api/api.ts'
import type { Config } from '../../../shared/config/load.ts'
import { enabledRules } from '../../../shared/schedules/definitions.ts'
import type { Agent } from '../../../shared/config/schema.ts'
import { version } from '../../../shared/version.ts'

/*
 * What is wrong with agents over several machines: a rule names one that no machine has, or one has it with
 * other settings. Receivers find it, as they hear of all machines and have the rules, and tell workers.
 */

/** Without a machine: none has the agent. Else the settings by which the agent of that machine differs. */
export const agentFaultSchema = z.object({
  agent: z.string().max(200),
  machine: z.string().max(100).optional(),
  keys: z.array(z.string().max(40)).max(40).optional(),
})
export type AgentFault = z.infer<typeof agentFaultSchema>

/** A hash of each setting of an agent, so that machines can compare them. */
export type AgentSettings = Readonly<Record<string, string>>

/** A machine as it has reported itself, with the settings of its agents. */
export type MachineWithSettings = Omit<Machine, 'agents'> & {
  readonly agents: readonly (Machine['agents'][number] & {
    readonly settings?: AgentSettings | undefined
  })[]
}

/** What a machine may have of its own. */
const ofTheMachine = new Set([
  'concurrency',
  'command',
  'cwd',
  'env',
  'proxy_env',
  'url',
  'base_url',
  'api_key_env',
  'headers',
])

export const toSettings = (agent: Agent): AgentSettings =>
  Object.fromEntries(
    Object.entries(agent)
      .filter(([key, value]) => value !== undefined && !ofTheMachine.has(key))
      .map(([key, value]) => [key, hash('sha256', JSON.stringify(value)).slice(0, 12)]),
  )

/** The agents that rules run. */
export const neededAgents = (config: Config): ReadonlyMap<string, Agent> =>
  new Map(enabledRules(config).map(({ agentName, agent }) => [agentName, agent]))

export const findAgentFaults = (
  needed: ReadonlyMap<string, Agent>,
  machines: readonly MachineWithSettings[],
): AgentFault[] =>
  [...needed].flatMap(([name, agent]): AgentFault[] => {
    const having = machines.flatMap(({ name: machine, version: of, agents }) =>
      agents
        .filter((one) => one.name === name)
        .map(({ settings }) => ({ machine, settings: of === version ? settings : undefined })),
    )
    if (having.length === 0) return [{ agent: name }]
    const own = toSettings(agent)
    return having.flatMap(({ machine, settings }) => {
      // Another version has other settings, and is told of by itself.
      const keys = settings ? differingKeys(own, settings) : []
      return keys.length === 0 ? [] : [{ agent: name, machine, keys }]
    })
  })

const differingKeys = (one: AgentSettings, other: AgentSettings): string[] =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])]
    .filter((key) => one[key] !== other[key])
    .toSorted()

/** What an event is told that waits for such an agent. */
export const describeMissing = (agent: string): string =>
  `no machine that is heard of runs the agent ${agent}`

export const toAgentProblem = ({ agent, machine, keys = [] }: AgentFault): StatusProblem =>
  machine === undefined
    ? {
        code: 'queue-agent-missing',
        detail: `queue: ${describeMissing(agent)}, which a rule names: its events wait`,
        hint: `write ${agent} into the agents.yaml of a worker: doorward help several-machines`,
        about: { agent },
      }
    : {
        code: 'queue-agent-differs',
        detail: `queue: the agent ${agent} on ${machine} differs from that of the receiver in ${keys.join(', ')}`,
        hint: 'write the same into the agents.yaml of both machines',
        about: { agent },
      }
