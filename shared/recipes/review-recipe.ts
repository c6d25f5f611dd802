import type { Agent, CliAgent } from '../agents/schema.ts'
import { isCliKind } from '../agents/clis.ts'
import { getToolLevel } from '../agents/tools.ts'
import { findSandbox } from '../sandbox/probe.ts'
import { setInEntry } from '../config-edit/add-entry.ts'
import type { OpenConfig } from '../config-edit/open-config.ts'

/*
 * `webhook add github-review`: an agent reviews pull requests with the code before it.
 */

export const reviewEvents = ['opened', 'reopened', 'synchronize', 'ready_for_review'].map(
  (action) => `pull_request.${action}`,
)

export const reviewTarget = 'github-review:{{event.repository.full_name}}#{{event.number}}'

/** The fields of the rule that are the same for everyone, with their comments. */
export const reviewFields = {
  lines: [
    '',
    '# The code after the change: checked out for each run, and removed afterwards.',
    'workspace:',
    "  repo: '{{event.repository.full_name}}'",
    "  ref: '{{event.pull_request.head.sha}}'",
    "  base: '{{event.pull_request.base.sha}}'",
    'context: [diff, reviews]',
    '',
    '# A newer push stops the review of the older one, and a pull request that is closed needs none.',
    'coalesce:',
    "  key: '{{event.repository.full_name}}#{{event.number}}'",
    '  running: cancel',
    '  cancel_on: pull_request.closed',
    '',
  ],
  value: {
    workspace: {
      repo: '{{event.repository.full_name}}',
      ref: '{{event.pull_request.head.sha}}',
      base: '{{event.pull_request.base.sha}}',
    },
    context: ['diff', 'reviews'],
    coalesce: {
      key: '{{event.repository.full_name}}#{{event.number}}',
      running: 'cancel',
      cancel_on: 'pull_request.closed',
    },
  },
}

/** What an agent gets for its review; `text` is agents.yaml with it. */
export type Equipment = { readonly text?: string; readonly note: string }

/**
 * Lets an agent program read files of the checkout, in a sandbox only. One that has tools or a folder of its own
 * stays as it is.
 */
export const equipReviewer = async (
  name: string,
  { config, env, file }: OpenConfig,
): Promise<Equipment | undefined> => {
  const agent = config.agents.get(name)
  if (!agent) return undefined
  const alone = (why: string): Equipment => ({ note: `sees the diff alone: ${why}` })
  if (!isReader(agent)) return alone(`an agent of kind ${agent.kind} has no tools that read files`)
  const { cwd, tools, sandbox } = agent
  if (tools !== undefined || getToolLevel(agent) !== 'none') return undefined
  const byHand = 'tools: read, and sandbox: required (doorward config edit agents)'
  if (cwd !== undefined)
    return alone(`it has a cwd of its own; to let it read there too: ${byHand}`)
  if (sandbox === 'off') return alone('its sandbox is off')
  const found = await findSandbox(env)
  if ('missing' in found) return alone(`${found.missing}; ${found.hint}; then give it ${byHand}`)
  const keys = { tools: 'read', ...(sandbox === undefined && { sandbox: 'required' }) }
  const text = setInEntry(file('agents').text, ['agents', name], 'kind', keys)
  if (text === undefined) return alone(`to let it read files give it ${byHand}`)
  return {
    text,
    note: 'may now read the checkout, in a sandbox: tools: read in agents.yaml',
  }
}

/** An agent program, which may get tools that read files. */
export const isReader = (agent: Agent): agent is CliAgent =>
  isCliKind(agent.kind) && agent.kind !== 'llm'
