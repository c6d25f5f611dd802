import { isAbsolute } from 'node:path'
import { z } from 'zod'
import { compileTest } from '../filter/tests.ts'
import { DoorwardError } from '../errors.ts'
import { optionalDuration } from '../config/values.ts'
import type { YamlPath } from '../config/yaml.ts'

/*
 * Sources on this machine: a program whose lines are events, and files whose changes are.
 */

/** The lines of a program that doorward keeps running. */
export type CommandFeed = {
  readonly kind: 'command'
  readonly argv: readonly string[]
  /** The lines of this time, in milliseconds, are one event; 0 for an event each. */
  readonly batchMs: number
  /** How many events may wait for their agent. */
  readonly maxWaiting: number
}

const fileEvents = ['created', 'changed', 'removed'] as const

export type FilesFeed = {
  readonly kind: 'files'
  readonly globs: readonly string[]
  readonly events: readonly (typeof fileEvents)[number][]
}

/** The keys of `source` for them. */
export const localFields = {
  command: z
    .array(z.string())
    .min(1)
    .optional()
    .describe(
      'Instead of provider: a program and its arguments, each line of whose output is an event. It is kept running.',
    ),
  batch: optionalDuration(
    'With command: the lines of this time are one event, as 250ms; at most 1m. Default: an event each.',
  ),
  max_waiting: z
    .int()
    .min(1)
    .max(10_000)
    .optional()
    .describe('With command: how many events may wait; newer lines are left out. Default 100.'),
  files: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe('Instead of provider: globs with the whole path, whose files are watched.'),
  events: z
    .array(z.enum(fileEvents))
    .min(1)
    .optional()
    .describe('With files: created, changed or removed. Default: created and changed.'),
}

type LocalEntry = {
  readonly [Name in keyof typeof localFields]?: z.output<(typeof localFields)[Name]>
}

/** Undefined for a source elsewhere. */
export const toLocalFeed = (source: LocalEntry): CommandFeed | FilesFeed | undefined => {
  const { command: argv, batch: batchMs = 0, max_waiting: maxWaiting = 100, files } = source
  if (argv) return { kind: 'command', argv, batchMs, maxWaiting }
  const { events = ['created', 'changed'] } = source
  return files && { kind: 'files', globs: files, events }
}

const keysOf = {
  command: ['command', 'batch', 'max_waiting'],
  files: ['files', 'events'],
} as const

/** Checks the keys of a source on this machine. */
export const checkLocalFeed = (
  source: LocalEntry,
  report: (key: YamlPath, reason: string, hint?: string) => void,
): void => {
  const at = (key: string, reason: string, hint?: string) => report(['source', key], reason, hint)
  const kind = source.command ? 'command' : 'files'
  const own: readonly string[] = keysOf[kind]
  for (const key of Object.keys(source))
    if (!own.includes(key)) at(key, `not used with ${kind}`, 'remove it')
  if ((source.batch ?? 0) > 60_000) at('batch', 'must be at most 1m')
  for (const glob of source.files ?? []) {
    if (!isAbsolute(glob) && !glob.startsWith('~/'))
      at(
        'files',
        `${JSON.stringify(glob)} is no whole path`,
        'write /home/me/inbox/*.pdf or ~/inbox/*.pdf',
      )
    try {
      compileTest('glob', [glob])
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      at('files', error.message, error.hint)
    }
  }
}
