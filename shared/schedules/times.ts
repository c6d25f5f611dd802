import { Cron } from 'croner'
import { DoorwardError } from '../errors.ts'

/*
 * When a schedule is due. Croner only calculates: Vixie's rules (a day of the month or of the week), and around a
 * change of the clock a time in the missing hour comes after it, and one in the doubled hour once.
 */

/** Its times, as they are written. */
export type When = {
  /** Five fields. */
  readonly cron?: string | undefined
  /** Milliseconds. */
  readonly every?: number | undefined
  /** A day and a time without an offset, in its time zone. */
  readonly at?: string | undefined
  /** A name of the IANA database; undefined for that of the machine. */
  readonly timezone?: string | undefined
}

/** The times of a schedule. All times are milliseconds since 1970. */
export type Times = {
  /** Identifies what is written: times of another text say nothing of these. */
  readonly text: string
  /** The first time after this one; undefined where none comes. `every` counts from `from`. */
  readonly next: (after: number, from: number) => number | undefined
  /** The newest time after `from` up to `until`, and how many there are, up to 1,000. */
  readonly due: (
    from: number,
    until: number,
  ) => { readonly newest: number; readonly count: number } | undefined
}

const mostCounted = 1000

/** Throws `config-invalid`, with the key that is wrong in `about.target`. */
export const parseTimes = ({ cron, every, at, timezone }: When): Times => {
  const zone = timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  checkZone(zone)
  if (every !== undefined) return everyTimes(every)
  const text = `${at === undefined ? `cron ${cron}` : `at ${at}`} ${zone}`
  const pattern = at === undefined ? parseCron(cron ?? '', zone) : parseAt(at, zone)
  const next = (after: number) => pattern.nextRun(new Date(after))?.getTime()
  return {
    text,
    next,
    due: (from, until) => {
      let newest: number | undefined
      let count = 0
      for (let time = next(from); time !== undefined && time <= until; time = next(time)) {
        newest = time
        count += 1
        if (count < mostCounted) continue
        newest = pattern.previousRuns(1, new Date(until + 1000))[0]?.getTime() ?? newest
        break
      }
      return newest === undefined ? undefined : { newest, count }
    },
  }
}

const everyTimes = (ms: number): Times => ({
  text: `every ${ms}`,
  next: (after, from) => from + (Math.floor(Math.max(0, after - from) / ms) + 1) * ms,
  due: (from, until) => {
    const count = Math.floor((until - from) / ms)
    return count < 1
      ? undefined
      : { newest: from + count * ms, count: Math.min(count, mostCounted) }
  },
})

const parseCron = (text: string, zone: string): Cron => {
  const fields = text.trim().split(/\s+/)
  if (!text.trim().startsWith('@') && fields.length !== 5)
    throw invalid(
      `it has ${fields.length} ${fields.length === 1 ? 'field' : 'fields'}, not five`,
      'minute, hour, day of the month, month, day of the week: 0 9 * * 1-5',
    )
  const pattern = create(text.trim(), zone)
  if (!pattern.nextRun()) throw invalid('this day never comes')
  return pattern
}

const create = (text: string, zone: string): Cron => {
  try {
    return new Cron(text, { paused: true, timezone: zone, mode: '5-part' })
  } catch {
    throw invalid(
      'not a time that cron has',
      'minute, hour, day of the month, month, day of the week: 0 9 * * 1-5',
    )
  }
}

const parseAt = (text: string, zone: string): Cron => {
  const time = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$/.exec(text)
  const written = time && (time[1] === undefined ? `${text}:00` : text)
  if (!written || Number.isNaN(Date.parse(`${written}Z`)) || !isDay(written))
    throw invalid('not a day and a time', 'write it like 2026-12-01T09:00')
  return new Cron(written, { paused: true, timezone: zone })
}

/** False for the 31st of February, which a Date takes for a day in March. */
const isDay = (text: string): boolean =>
  new Date(`${text}Z`).toISOString().slice(0, 10) === text.slice(0, 10)

const checkZone = (zone: string): void => {
  try {
    Intl.DateTimeFormat('en', { timeZone: zone })
  } catch {
    throw new DoorwardError('config-invalid', 'not a time zone', {
      hint: 'write it like Europe/Berlin or UTC',
      about: { target: 'timezone' },
    })
  }
}

const invalid = (message: string, hint?: string) =>
  new DoorwardError('config-invalid', message, { hint })
