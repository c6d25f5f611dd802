import { type Markup, markup } from './markup.ts'

/** Times in the zone of the reader; each is a `time` element with the exact moment. */
export type Times = {
  /** `14:03` today, else `28 Nov, 14:03`, with the year where it is another. */
  readonly at: (iso: string) => Markup
  /** The exact time with its zone, for a view of one thing. */
  readonly exact: (iso: string) => Markup
  /** `3 min ago`, `in 2 h`. */
  readonly ago: (iso: string) => Markup
  /** A name of the IANA database. */
  readonly zone: string
}

/** Formatters of a zone are costly to make. */
const known = new Map<string, Times>()
const maxZones = 16

/** Times of this zone; those of this machine where the zone is not known. */
export const timesIn = (zone: string | undefined): Times => {
  const found = known.get(zone ?? '')
  if (found) return found
  const times = create(isZone(zone) ? zone : undefined)
  if (known.size >= maxZones) known.clear()
  known.set(zone ?? '', times)
  return times
}

const isZone = (zone: string | undefined): boolean => {
  if (zone === undefined || !/^[\w+/-]{1,64}$/.test(zone)) return false
  try {
    return Boolean(new Intl.DateTimeFormat('en-GB', { timeZone: zone }))
  } catch {
    return false
  }
}

const create = (timeZone: string | undefined): Times => {
  const format = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat('en-GB', { ...options, ...(timeZone !== undefined && { timeZone }) })
  const time = { hour: '2-digit', minute: '2-digit' } as const
  const day = { day: 'numeric', month: 'short' } as const
  const formats = {
    time: format(time),
    day: format({ ...day, ...time }),
    year: format({ ...day, year: 'numeric', ...time }),
    exact: format({ ...day, year: 'numeric', ...time, second: '2-digit', timeZoneName: 'short' }),
    date: format({ ...day, year: 'numeric' }),
  }
  const element = (iso: string, text: string): Markup =>
    markup`<time datetime="${iso}" title="${formats.exact.format(new Date(iso))}">${text}</time>`
  return {
    zone: formats.time.resolvedOptions().timeZone,
    at: (iso) => {
      const [at, now] = [new Date(iso), new Date()]
      if (formats.date.format(at) === formats.date.format(now))
        return element(iso, formats.time.format(at))
      const isThisYear = formats.year.format(at).includes(String(now.getFullYear()))
      return element(iso, (isThisYear ? formats.day : formats.year).format(at))
    },
    exact: (iso) => element(iso, formats.exact.format(new Date(iso))),
    ago: (iso) => element(iso, formatDistance(new Date(iso).getTime() - Date.now())),
  }
}

/** `just now`, `3 min ago`, `in 2 h`, `4 d ago`. */
const formatDistance = (ms: number): string => {
  const minutes = Math.round(Math.abs(ms) / 60_000)
  if (minutes < 1) return ms > 0 ? 'in a moment' : 'just now'
  const text =
    minutes < 60
      ? `${minutes} min`
      : minutes < 48 * 60
        ? `${Math.round(minutes / 60)} h`
        : `${Math.round(minutes / 1440)} d`
  return ms > 0 ? `in ${text}` : `${text} ago`
}
