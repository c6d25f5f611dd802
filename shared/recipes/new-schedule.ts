import { resolve } from 'node:path'
import { yamlBlock, yamlText } from '../config-edit/add-entry.ts'
import type { OpenConfig } from '../config-edit/open-config.ts'
import { DoorwardError } from '../errors.ts'
import { expandTilde } from '../home/home.ts'

/* Schedules as `schedules.yaml` gets them. */

export type ScheduleOptions = {
  readonly cron?: string
  readonly every?: string
  readonly at?: string
  readonly timezone?: string
  readonly agent?: string
  readonly prompt?: string
  readonly repo?: string
  readonly deliverTo?: string
  readonly print?: boolean
}

/** The agent that is named, or the only one. Throws `usage`. */
export const chooseScheduleAgent = ({ config }: OpenConfig, { agent }: ScheduleOptions): string => {
  const names = [...config.agents.keys()]
  const [only] = names
  const chosen = agent ?? (names.length === 1 ? only : undefined)
  if (chosen !== undefined) return chosen
  throw new DoorwardError('usage', 'say which agent runs: --agent NAME', {
    hint: `known: ${names.join(', ')}`,
  })
}

const digestPrompt = `This is what was committed to a repository within a week:

{{context.command}}

Write a digest for somebody who was away: at most ten lines, what changed and why it matters, what looks
risky, and who did most of it. Leave out what only a tool did.
`

export const digestName = 'weekly-digest'

/** The lines of an entry of `schedules.yaml`, and its value. Throws `usage`. */
export const scheduleEntry = (name: string, agent: string, options: ScheduleOptions) => {
  const isDigest = name === digestName && options.prompt === undefined
  const { cron = isDigest && !options.every && !options.at ? '0 9 * * 1' : undefined } = options
  const { every, at, timezone, prompt = isDigest ? digestPrompt : undefined } = options
  if (prompt === undefined)
    throw new DoorwardError('usage', 'say what the agent is asked: --prompt TEXT')
  if (isDigest && options.repo === undefined)
    throw new DoorwardError('usage', 'say which repository it tells of: --repo DIR')
  if (!isDigest && options.repo !== undefined)
    throw new DoorwardError('usage', `--repo is used with ${digestName} only`)
  const deliverTo = options.deliverTo ?? 'notify:desktop'
  const command =
    options.repo === undefined
      ? undefined
      : ['git', '-C', resolve(expandTilde(options.repo)), 'log', '--since=1.week', '--stat']
  const value = {
    name,
    ...(cron !== undefined && { cron }),
    ...(every !== undefined && { every }),
    ...(at !== undefined && { at }),
    ...(timezone !== undefined && { timezone }),
    agent,
    prompt_template: prompt,
    ...(command && { context: ['command'], context_command: command }),
    deliver_to: deliverTo,
  }
  const when = Object.entries({ cron, every, at, timezone }).flatMap(([key, text]) =>
    text === undefined ? [] : [`${key}: ${yamlText(text)}`],
  )
  const lines = [
    `name: ${yamlText(name)}`,
    ...when,
    `agent: ${yamlText(agent)}`,
    ...yamlBlock('prompt_template', prompt),
    ...(command
      ? ['context: [command]', `context_command: [${command.map(yamlText).join(', ')}]`]
      : []),
    `deliver_to: ${yamlText(deliverTo)}`,
  ]
  return {
    value,
    lines: lines.map((line, index) => (index === 0 ? `- ${line}` : line && `  ${line}`)),
  }
}
