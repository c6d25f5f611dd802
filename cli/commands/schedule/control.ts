import type { ScheduleRun, ScheduleSummary } from '../../../shared/api/schedules.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { fromNow } from '../../terminal/format.ts'
import { tableLines } from '../../terminal/table.ts'

/** Prints the schedules with their next three runs. */
export const listSchedules = async (context: Context): Promise<void> => {
  const { terminal } = context
  const answer = await withDaemon(context, (client) =>
    client.get<{ schedules: ScheduleSummary[] }>('/schedules'),
  )
  if (terminal.json) return terminal.printJson(answer)
  if (answer.schedules.length === 0)
    return terminal.say('there is no schedule\nhint: doorward schedule add --help')
  const now = new Date()
  const rows = answer.schedules.map((schedule) => [
    schedule.name,
    schedule.agent,
    describeNext(schedule, now),
    schedule.nextRuns
      .slice(1)
      .map((at) => inZone(at, schedule.timezone))
      .join(', '),
    schedule.lastRunAt === null ? '-' : inZone(schedule.lastRunAt, schedule.timezone),
  ])
  const header = ['NAME', 'AGENT', 'NEXT', 'THEN', 'LAST RUN']
  for (const line of tableLines([header, ...rows])) terminal.print(line)
  for (const { name, missed } of answer.schedules)
    if (missed)
      terminal.say(
        `${name} missed ${missed.count === 1 ? 'one run' : `${missed.count} runs`}: doorward schedule run ${name}, or doorward events missed --skip`,
      )
}

const describeNext = (
  { enabled, paused, nextRuns: [next], timezone }: ScheduleSummary,
  now: Date,
): string => {
  if (!enabled) return 'switched off'
  if (paused) return 'paused'
  return next === undefined
    ? 'never again'
    : `${inZone(next, timezone)} ${timezone} (${fromNow(next, now)})`
}

/** `Mon 30 Nov, 09:00`, in its own time zone. */
const inZone = (iso: string, timeZone: string): string =>
  new Intl.DateTimeFormat('en-GB', {
    timeZone,
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  }).format(new Date(iso))

/** A skip_if and a context_command may take three minutes. */
const runLimitMs = 200_000

/** Runs one now, and prints the id of its event. Throws `schedule-not-found`. */
export const runSchedule = async (
  context: Context,
  [name = '']: readonly string[],
): Promise<void> => {
  const { terminal } = context
  const ran = await withDaemon(context, (client) =>
    client.post<ScheduleRun>(toUrl(name, 'run'), {}, { timeoutMs: runLimitMs }),
  )
  if (terminal.json) return terminal.printJson(ran)
  terminal.print(ran.id)
  terminal.say(
    ran.status === 'accepted'
      ? `it runs: doorward events show ${ran.id}`
      : `it was passed over: doorward events show ${ran.id}`,
  )
}

const switchSchedule =
  (what: 'pause' | 'resume') =>
  async (context: Context, [name = '']: readonly string[]): Promise<void> => {
    const { terminal } = context
    const changed = await withDaemon(context, (client) =>
      client.post<ScheduleSummary>(toUrl(name, what), {}),
    )
    if (terminal.json) return terminal.printJson(changed)
    terminal.print(toPlainLine(`${changed.name}: ${describeNext(changed, new Date())}`))
  }

/** Both throw `schedule-not-found`. */
export const pauseSchedule = switchSchedule('pause')
export const resumeSchedule = switchSchedule('resume')

const toUrl = (name: string, what: string): string =>
  `/schedules/${encodeURIComponent(name)}/${what}`
