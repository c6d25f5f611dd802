import { withConfigLock } from '../../../shared/home/lock.ts'
import { addEntry } from '../../../shared/config-edit/add-entry.ts'
import { openConfig } from '../../../shared/config-edit/open-config.ts'
import { withAgentOfName } from '../../../shared/recipes/new-agent.ts'
import {
  chooseScheduleAgent,
  scheduleEntry,
  type ScheduleOptions,
} from '../../../shared/recipes/new-schedule.ts'
import type { Context } from '../../context.ts'
import { printEntry } from '../../terminal/print-entry.ts'
import { tableLines } from '../../terminal/table.ts'
import { reloadIfRunning } from '../daemon/reload.ts'

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
    const entry = scheduleEntry(name, chooseScheduleAgent(open, options), options)
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
