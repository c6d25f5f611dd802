import type { CaughtUp, MissedHook } from '../../../shared/api/hooks.ts'
import type { ScheduleSummary } from '../../../shared/api/schedules.ts'
import type { Client } from '../../../shared/client/client.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { knownWebhook } from '../../daemon-client/webhooks.ts'
import { moment } from '../../terminal/format.ts'
import { tableLines } from '../../terminal/table.ts'

export type MissedOptions = {
  readonly run?: boolean
  readonly skip?: boolean
  readonly webhook?: string
}

/** A sender may have many pages. */
const limitMs = 5 * 60_000

/** Prints what did not arrive, or runs or forgets it. */
export const showMissed = async (
  context: Context,
  _arguments: (string | undefined)[],
  { run, skip, webhook }: MissedOptions,
): Promise<void> => {
  const { terminal } = context
  if (run && skip)
    throw new DoorwardError('usage', '--run and --skip exclude each other', {
      hint: 'doorward events missed shows what there is',
    })
  await withDaemon(context, async (client) => {
    const path = webhook === undefined ? undefined : await knownWebhook(client, webhook, terminal)
    const answer = await client.get<{ hooks: MissedHook[] }>('/events/missed?fresh=true', {
      timeoutMs: limitMs,
    })
    const hooks = answer.hooks.filter((hook) => (path ?? hook.path) === hook.path)
    const schedules = path === undefined ? await listMissedSchedules(client) : []
    if (!run && !skip) return printMissed(hooks, schedules, context)
    for (const { repository, problem } of hooks)
      if (problem !== undefined) terminal.say(toPlainLine(`${repository}: ${problem}`))
    const body = { do: run ? 'run' : 'skip', ...(path !== undefined && { path }) }
    const done = await client.post<CaughtUp>('/events/missed', body, { timeoutMs: limitMs })
    for (const { name } of schedules)
      if (run)
        await client.post(`/schedules/${encodeURIComponent(name)}/run`, {}, { timeoutMs: limitMs })
    if (skip && schedules.length > 0) await client.delete('/schedules/missed')
    const own = schedules.length
    const all = run ? { ...done, run: done.run + own } : { ...done, skipped: done.skipped + own }
    if (terminal.json) return terminal.printJson(all)
    terminal.print(describe(all))
    if (done.problem !== undefined) terminal.say(toPlainLine(`stopped early: ${done.problem}`))
  })
}

const listMissedSchedules = async (client: Client): Promise<ScheduleSummary[]> => {
  const answer = await client.get<{ schedules: ScheduleSummary[] }>('/schedules')
  return answer.schedules.filter(({ missed }) => missed)
}

const describe = ({ run, skipped, refused, waiting }: CaughtUp): string => {
  const counts = [
    ...(run > 0 ? [`${run} run: doorward events`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(refused > 0 ? [`${refused} refused or no longer at the sender`] : []),
    ...(waiting > 0 ? [`${waiting} waiting: doorward events missed --run`] : []),
  ]
  return counts.length > 0 ? counts.join('\n') : 'nothing was missed'
}

const mostShown = 50

const printMissed = (
  hooks: readonly MissedHook[],
  schedules: readonly ScheduleSummary[],
  { terminal }: Context,
): void => {
  if (terminal.json) return terminal.printJson({ hooks, schedules })
  for (const { name, missed } of schedules)
    terminal.print(
      `schedule ${name} missed ${missed?.count === 1 ? 'one run' : `${missed?.count} runs`}`,
    )
  if (hooks.length === 0 && schedules.length > 0)
    return terminal.say('run each once: doorward events missed --run; forget them: --skip')
  if (hooks.length === 0)
    return terminal.say(
      'no deliveries are caught up\nhint: doorward webhook connect github OWNER/REPO',
    )
  const now = new Date()
  const rows = hooks.flatMap(({ repository, path, waiting }) =>
    waiting.map(({ at, event, answer }) => [moment(at, now), repository, event, answer, path]),
  )
  if (rows.length > 0) {
    const header = ['SENT', 'REPOSITORY', 'EVENT', 'ANSWER', 'WEBHOOK']
    for (const line of tableLines([header, ...rows.slice(0, mostShown)])) terminal.print(line)
    const more = rows.length - mostShown
    if (more > 0) terminal.print(`and ${more.toLocaleString('en')} more: --json has all`)
    terminal.say('run them: doorward events missed --run; forget them: --skip')
  } else if (hooks.every(({ problem }) => problem === undefined)) terminal.say('nothing was missed')
  for (const { repository, problem, hint } of hooks)
    if (problem !== undefined)
      terminal.say(
        toPlainLine(`${repository}: ${problem}`) + (hint === undefined ? '' : `\nhint: ${hint}`),
      )
}
