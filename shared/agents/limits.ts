import { z } from 'zod'
import { size } from '../config/values.ts'

const values = {
  memory: size('4gb', 'Of all its processes together.'),
  processes: z.int().min(8).max(100_000).default(512).describe('At the same time. Default 512.'),
  disk: size('2gb', 'Of all files that it writes, and in each folder that is in memory.'),
}

/** The most that a run in a sandbox may take. */
export const limitsSchema = z
  .strictObject(values)
  .describe(
    'What a run may take in a sandbox on Linux, above which it is ended: a map of memory, processes and disk. Default 4gb, 512 and 2gb.',
  )

/** Bytes; `processes` is a count. */
export type Limits = z.output<typeof limitsSchema>

/** `512mb`, as the file has it. */
const toSize = (bytes: number): string => {
  const power = [3, 2, 1].find((one) => bytes % 1024 ** one === 0) ?? 0
  return `${bytes / 1024 ** power}${['b', 'kb', 'mb', 'gb'][power]}`
}

/** `at most 4gb memory, 512 processes, 2gb disk` */
export const describeLimits = ({ memory, processes, disk }: Limits): string =>
  `at most ${toSize(memory)} memory, ${processes} processes, ${toSize(disk)} disk`

export const defaultLimits: Limits = limitsSchema.parse({})
