import { mkdir, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { writeFileAtomic } from '../../shared/home/files.ts'
import { systemReason } from '../../shared/home/home.ts'
import { parseJson } from '../util/payload-path.ts'

/* The file of schedules keeps names, times and switches, and nothing that a run said. */

const time = z.number().min(0)

const stateSchema = z.strictObject({
  /** The times that are written, as text: those of another text say nothing of these. */
  text: z.string(),
  /** Nothing up to this time is due any more. */
  lastDue: time,
  /** When it last ran: the time that was due, or that of a run by hand. */
  lastRun: time.optional(),
  paused: z.literal(true).optional(),
  /** They wait for their owner, with `missed: ask`. */
  missed: z.strictObject({ newest: time, count: z.int().min(1) }).optional(),
})

export type ScheduleState = z.output<typeof stateSchema>

const fileSchema = z.record(z.string(), stateSchema)

/** Empty for a file that is missing. Throws `state-damaged`, or `home-unusable` for one that cannot be read. */
export const readScheduleStates = async (file: string): Promise<Map<string, ScheduleState>> => {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return new Map()
    throw new DoorwardError('home-unusable', `cannot read ${file}: ${systemReason(error)}`, {
      cause: error,
      hint: 'make it readable for you',
    })
  }
  const { data } = fileSchema.safeParse(parseJson(text))
  if (data) return new Map(Object.entries(data))
  throw new DoorwardError('home-unusable', `${file} is damaged`, {
    hint: 'every schedule begins with its next time; earlier ones are not known',
  })
}

export const writeScheduleStates = async (
  file: string,
  states: ReadonlyMap<string, ScheduleState>,
): Promise<void> => {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  await writeFileAtomic(file, `${JSON.stringify(Object.fromEntries(states), null, 2)}\n`)
}
