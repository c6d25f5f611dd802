import { detectAgentClis } from '../agents/detect.ts'
import { isCliKind } from '../agents/clis.ts'
import type { Agent, CliAgent } from '../agents/schema.ts'
import { getToolLevel } from '../agents/tools.ts'
import { DoorwardError } from '../errors.ts'
import { findSandbox } from '../sandbox/probe.ts'
import { setInEntry } from '../config-edit/add-entry.ts'
import type { OpenConfig } from '../config-edit/open-config.ts'
import type { Equipment } from './review-recipe.ts'

/*
 * The agent of a recipe that changes code. It is another one than that which reads: one that may write gets a rule of
 * its own, and a program may be that of both.
 */

/** Its name, and the kind that it is made of where it is not there. */
export type Fixer = { readonly name: string; readonly kind: string }

const usualName = 'fixer'

const isProgram = (agent: Agent): agent is CliAgent => isCliKind(agent.kind) && agent.kind !== 'llm'

const mayWrite = (agent: Agent): boolean => isProgram(agent) && getToolLevel(agent) === 'write'

/** The agent that is named, the only one that may write, or a new one of a program that is there. Throws `usage`. */
export const chooseFixer = async (
  { config, env }: OpenConfig,
  given: string | undefined,
): Promise<Fixer> => {
  if (given !== undefined) return { name: given, kind: given }
  const writers = [...config.agents].filter(([, agent]) => mayWrite(agent))
  const [only] = writers
  if (only && writers.length === 1) return { name: only[0], kind: only[1].kind }
  if (writers.length > 1)
    throw new DoorwardError('usage', 'there is more than one agent that may write: choose one', {
      hint: `--agent with one of ${writers.map(([name]) => name).join(', ')}`,
    })
  const known = [...config.agents.values()].find(isProgram)?.kind
  const installed = (await detectAgentClis(env)).find(
    ({ kind, path }) => path !== undefined && kind !== 'llm',
  )
  const kind = known ?? installed?.kind
  if (kind === undefined)
    throw new DoorwardError('usage', 'no agent program that could change code is on PATH', {
      hint: 'install claude, codex, gemini or opencode, or name one with --agent',
    })
  return { name: usualName, kind }
}

/** Gives a new agent the tools that change files, in a sandbox only; one that was there stays as it is. */
export const equipFixer = async (
  name: string,
  { config, env, file }: OpenConfig,
  isNew: boolean,
): Promise<Equipment | undefined> => {
  const agent = config.agents.get(name)
  if (!agent || agent.kind === 'command' || mayWrite(agent)) return undefined
  const byHand = 'tools: write, and sandbox: required (doorward config edit agents)'
  if (!isNew) return { note: `changes no file until it has ${byHand}` }
  const keys = { tools: 'write', sandbox: 'required', timeout: '20m' }
  const text = setInEntry(file('agents').text, ['agents', name], 'kind', keys)
  if (text === undefined) return { note: `changes no file until it has ${byHand}` }
  const found = await findSandbox(env)
  const may = 'may change the checkout, in a sandbox: tools: write in agents.yaml'
  return { text, note: 'missing' in found ? `${may}; ${found.missing}; ${found.hint}` : may }
}
