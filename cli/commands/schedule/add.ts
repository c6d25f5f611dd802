import { resolve } from 'node:path'
import { DoorwardError } from '../../../shared/errors.ts'
import { expandTilde } from '../../../shared/home/home.ts'
import { withConfigLock } from '../../../shared/home/lock.ts'
import { addEntry, printEntry, yamlBlock, yamlText } from '../../config-edit/add-entry.ts'
import { type OpenConfig, openConfig } from '../../config-edit/open-config.ts'
import type { Context } from '../../context.ts'
import { tableLines } from '../../terminal/table.ts'
import { withAgentOfName } from '../agent/add.ts'
import { reloadIfRunning } from '../daemon/reload.ts'

type ScheduleOptions = {
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

/**
 * Adds a schedule to `schedules.yaml`. On any error nothing is written. Throws `usage`, `config-invalid`,
 * `home-unusable`.
 */
export const addSchedule = async (
  context: Context,
  [name = '']: readonly string[],
  options: ScheduleOptions,
): Promise<void> => {
  const { home, terminal } = context
  const { file, line, agent } = await withConfigLock(home, async () => {
    const before = await openConfig(home)
    const open = await withAgentOfName(before, options.agent)
    const entry = toEntry(name, chooseAgent(open, options), options)
    if (options.print) {
      printEntry(terminal, { name }, entry)
      return { file: undefined, line: 0, agent: '' }
    }
    const old = open.file('schedules')
    const { schedules } = (old.value ?? {}) as { schedules?: unknown[] | null }
    const expected = [...(schedules ?? []), entry.value]
    const added = addEntry(old.text, 'schedules', { lines: entry.lines, expected })
    open.check('schedules', added.text)
    const agents = open.file('agents')
    if (agents.text !== before.file('agents').text) await open.write('agents', agents.text)
    await open.write('schedules', added.text)
    return { file: old.path, line: added.line, agent: entry.value.agent }
  })
  if (file === undefined) return
  const taken = await reloadIfRunning(context)
  if (terminal.json)
    return terminal.printJson({ name, agent, file, line, reloaded: taken !== undefined })
  for (const row of tableLines([
    ['added', `${file}:${line}`],
    ['agent', agent],
  ]))
    terminal.print(row)
  taken?.tell()
  terminal.say(`next:\n  doorward schedule list\n  doorward schedule run ${name}`)
}

const chooseAgent = ({ config }: OpenConfig, { agent }: ScheduleOptions): string => {
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

const digestName = 'weekly-digest'

/** The lines of an entry, and its value. Throws `usage`. */
const toEntry = (name: string, agent: string, options: ScheduleOptions) => {
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
