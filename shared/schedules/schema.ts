import { z } from 'zod'
import { optionalDuration } from '../config/values.ts'
import { ruleFields, ruleName } from '../config/webhook-schema.ts'
import { contextNames } from '../templates.ts'

/*
 * The schema of schedules.yaml. An entry has the fields of a rule that need no delivery.
 */

/** These say something of a delivery, its sender or its other events. */
const {
  on: _on,
  filter: _filter,
  paths: _paths,
  paths_ignore: _pathsIgnore,
  who: _who,
  allowed_bots: _bots,
  acknowledge: _acknowledge,
  check: _check,
  coalesce: _coalesce,
  event_text: _eventText,
  max_value_length: _maxLength,
  context: _context,
  ...fields
} = ruleFields

const argv = z.array(z.string()).min(1)

export const scheduleSchema = z.strictObject({
  name: ruleName.describe('Name of the schedule, in events and commands.'),
  cron: z
    .string()
    .optional()
    .describe(
      'When it runs: minute, hour, day of the month, month, day of the week, as 0 9 * * 1-5. One of cron, every and at is required.',
    ),
  every: optionalDuration('Or how often it runs, as 2h: from 1m on.'),
  at: z.string().optional().describe('Or the one time at which it runs, as 2026-12-01T09:00.'),
  timezone: z
    .string()
    .optional()
    .describe('The time zone of cron and at, as Europe/Berlin. Default: that of the machine.'),
  missed: z
    .enum(['run_once', 'skip', 'ask'])
    .optional()
    .describe(
      'Whether times at which this machine slept or was off are made up: run_once the newest, skip none; ask tells you. Default run_once.',
    ),
  jitter: optionalDuration(
    'Up to how much later than its time it runs, another time for each; up to 1h. Default 0s.',
  ),
  overlap: z
    .enum(['skip', 'queue'])
    .optional()
    .describe('What a run does while the one before it is not over. Default skip.'),
  skip_if: argv
    .optional()
    .describe(
      'A program and its arguments: where it exits with 0, nothing runs. At most a minute. Default: none.',
    ),
  context_command: argv
    .optional()
    .describe(
      'A program and its arguments, whose output is {{context.command}} of the prompt. At most two minutes.',
    ),
  context: z
    .array(z.enum([...contextNames, 'command']))
    .min(1)
    .optional()
    .describe(
      'What {{context.<name>}} of the prompt can be: command, or from the workspace what a rule can have. Default: nothing.',
    ),
  ...fields,
  enabled: z.boolean().default(true).describe('With false, it does not run. Default true.'),
})

export const schedulesFileSchema = z.strictObject({
  schedules: z.array(scheduleSchema).describe('What runs at a time.'),
})

export type ScheduleEntry = z.output<typeof scheduleSchema>
