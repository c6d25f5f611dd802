import { agentClis, isCliKind } from './clis.ts'
import type { NetworkMode } from '../api/api.ts'
import { defaultLimits, describeLimits } from './limits.ts'
import { isLimited, readMode } from './network.ts'
import type { Agent, CliAgent, CommandAgent } from './schema.ts'

/** An agent that runs a program. */
export type ProgramAgent = CliAgent | CommandAgent

export const runsProgram = (agent: Agent): agent is ProgramAgent =>
  agent.kind === 'command' || isCliKind(agent.kind)

/** The level of tools: that of `tools`, or the grants of `args` in the program's own terms. */
export type ToolLevel = 'none' | 'read' | 'write' | 'args'

type Tooled = Pick<CliAgent, 'kind' | 'args'> & { readonly tools?: 'none' | 'read' | 'write' }

export const hasFlag = (args: readonly string[], flags: readonly string[]): boolean =>
  args.some((arg) => flags.includes(arg.split('=')[0] ?? ''))

/** `args` overrides `tools`. */
export const getToolLevel = ({ kind, args = [], tools = 'none' }: Tooled): ToolLevel =>
  hasFlag(args, agentClis[kind].toolFlags) ? 'args' : tools

const isCli = (agent: Agent): agent is CliAgent => isCliKind(agent.kind)

/** Whether a run of this agent is in a sandbox, where the system has one. */
export const wantsSandbox = (agent: ProgramAgent, hasWorkspace: boolean): boolean => {
  if (agent.sandbox === 'off') return false
  if (needsSandbox(agent)) return true
  return hasWorkspace || (isCli(agent) && getToolLevel(agent) !== 'none')
}

/** Whether it is not run where the system has no sandbox. */
export const needsSandbox = (agent: ProgramAgent): boolean =>
  agent.sandbox === 'required' || isLimited(agent.network)

/** What it reaches in a sandbox. */
export const getNetworkMode = (agent: ProgramAgent): NetworkMode =>
  readMode(agent.network) ?? (isCli(agent) && getToolLevel(agent) === 'write' ? 'model' : 'open')

/** What it reaches and may take in its sandbox, for people; undefined where it asks for none. */
export const describeSandboxOf = (
  agent: ProgramAgent,
  hasWorkspace: boolean,
  platform = process.platform,
): string | undefined => {
  if (!wantsSandbox(agent, hasWorkspace)) return undefined
  const { network, limits = defaultLimits } = agent
  const more = typeof network === 'object' ? ` and ${network.allow.join(', ')}` : ''
  const most = platform === 'linux' ? `, ${describeLimits(limits)}` : ''
  return `network ${getNetworkMode(agent)}${more}${most}`
}

/** Programs that read files without asking, unless their flags forbid it. */
const readers =
  /(?:^|[\\/])(?:claude|codex|gemini|opencode|cursor-agent|goose|aider)(?:\.(?:exe|cmd))?$/

/**
 * The grant by which this agent reads files or the web, for a warning: the words of its entry; undefined when it only
 * reads its prompt.
 */
export const describeReach = (agent: Agent): string | undefined => {
  if (agent.kind === 'command') return agent.command.find((word) => readers.test(word))
  if (!isCli(agent)) return undefined
  const { args = [] } = agent
  const level = getToolLevel(agent)
  if (level !== 'args') return level === 'none' ? undefined : `tools: ${level}`
  const { toolFlags } = agentClis[agent.kind]
  const at = args.findIndex((arg) => hasFlag([arg], toolFlags))
  const [flag = '', value] = args.slice(at, at + 2)
  return flag.includes('=') || value === undefined || value.startsWith('-')
    ? flag
    : `${flag} ${value}`.trimEnd()
}

/** `tools: write`, where the folder that this agent changes is used afterwards; undefined else. */
export const describeWriting = (
  agent: Agent,
  workspace: { readonly access: 'read' | 'write' } | undefined,
): string | undefined => {
  if (!isCli(agent) || getToolLevel(agent) !== 'write') return undefined
  const isUsed = workspace ? workspace.access === 'write' : agent.cwd !== undefined
  return isUsed ? 'tools: write' : undefined
}

/**
 * Whether what it reads may be the login that its sandbox holds for it: Codex reads by shell commands, and
 * allowed tools are not held to a folder.
 */
export const canReadLogin = (agent: ProgramAgent): boolean => {
  if (!isCli(agent)) return agent.command.some((word) => /(?:^|[\\/])codex$/.test(word))
  return agent.kind === 'codex' || hasFlag(agent.args ?? [], ['--allowedTools', '--allowed-tools'])
}
