import { z } from 'zod'
import { size } from '../config/values.ts'

const values = {
  memory: size('4gb', 'Of all its processes together.'),
  processes: z.int().min(8).max(100_000).default(512).describe('At the same time. Default 512.'),
  disk: size('2gb', 'The largest file, and the most in each folder that is in memory.'),
}

/** The most that a run in a sandbox may take. */
export const limitsSchema = z
  .strictObject(values)
  .describe(
    'What a run may take in a sandbox on Linux, above which it is ended: a map of memory, processes and disk. Default 4gb, 512 and 2gb.',
  )

/** Bytes; `processes` is a count. */
export type Limits = z.output<typeof limitsSchema>

export const defaultLimits: Limits = limitsSchema.parse({})
