import { z } from 'zod'
import { eventStates } from '../event-states.ts'

/* Schedules, in the local API. */

export const scheduleSchema = z.strictObject({
  name: z.string(),
  agent: z.string(),
  /** A name of the IANA database. */
  timezone: z.string(),
  /** The next three; none while it is paused. */
  nextRuns: z.array(z.iso.datetime()),
  paused: z.boolean(),
  enabled: z.boolean(),
  lastRunAt: z.iso.datetime().nullable(),
  /** The state of its newest event, while that is known. */
  lastState: z.enum(eventStates).optional(),
  deliverTo: z.array(z.string()),
  /** They wait for their owner, with `missed: ask`. */
  missed: z.strictObject({ count: z.int(), newestAt: z.iso.datetime() }).optional(),
})

/** `GET /schedules`. */
export const schedulesSchema = z.strictObject({ schedules: z.array(scheduleSchema) })
export type ScheduleSummary = z.infer<typeof scheduleSchema>

/** Response of `POST /schedules/:name/run`. */
export type ScheduleRun = {
  readonly id: string
  /** `filtered` where it was passed over. */
  readonly status: string
}
