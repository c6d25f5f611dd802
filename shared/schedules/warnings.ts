import { isAbsolute, resolve } from 'node:path'
import { findProgram, isExecutable } from '../agents/detect.ts'
import type { Config } from '../config/load.ts'
import { isForModel } from '../config/rule.ts'
import { warn, type Warning } from '../config/warning.ts'
import type { Schedule } from './schedule.ts'

/* Things that work in schedules.yaml but should not stay so. */

const file = 'config/schedules.yaml'
const oftenMs = 5 * 60_000

/** Schedules that never run again, and those that cost without a bound. */
export const scheduleWarnings = (
  { schedules, gateway }: Pick<Config, 'schedules' | 'gateway'>,
  now = Date.now(),
): Warning[] =>
  schedules
    .filter(({ enabled }) => enabled)
    .flatMap((schedule) => {
      const { name, times, webhook } = schedule
      const next = times.next(now, now)
      if (next === undefined)
        return warn(
          'schedule-past',
          `schedule ${name}: its time is over`,
          'remove it, or change at',
          {
            file,
          },
        )
      const after = times.next(next, next) ?? Number.POSITIVE_INFINITY
      const costs = webhook.rules.some(
        (rule) =>
          isForModel(rule.agent.kind) && !rule.budget && !rule.agent.budget && !rule.maxRuns,
      )
      return after - next < oftenMs && costs && !gateway.budget
        ? warn(
            'schedule-often',
            `schedule ${name}: asks a model more often than every 5 minutes, without a budget`,
            'write budget: { day: … }, or a skip_if',
            { file },
          )
        : []
    })

/** Programs of schedules that cannot be started. */
export const scheduleProgramWarnings = async (
  { schedules }: Pick<Config, 'schedules'>,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<Warning[]> => {
  const found = await Promise.all(
    schedules
      .filter(({ enabled }) => enabled)
      .flatMap(({ name, skipIf, contextCommand }: Schedule) =>
        Object.entries({ skip_if: skipIf, context_command: contextCommand }).map(
          async ([key, argv]) => {
            const [program] = argv ?? []
            if (program === undefined || (await canRun(program, env, homeFolder))) return []
            const detail = `schedule ${name}: ${key} names ${program}, which cannot be run`
            return warn('schedule-program-missing', detail, 'install it, or write its whole path', {
              file,
            })
          },
        ),
      ),
  )
  return found.flat()
}

const canRun = async (
  program: string,
  env: NodeJS.ProcessEnv,
  homeFolder: string,
): Promise<boolean> => {
  if (!/[\\/]/.test(program))
    return (
      (await findProgram(program, env['PATH'] ?? env['Path'] ?? '', env['PATHEXT'])) !== undefined
    )
  return isExecutable(isAbsolute(program) ? program : resolve(homeFolder, program))
}
