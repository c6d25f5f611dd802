import { twoDigits } from './two-digits.ts'

/** A moment in local time with its offset: `2025-11-20 12:04:05 +01:00`. */
export const localTime = (iso: string): string => {
  const time = new Date(iso)
  const offset = -time.getTimezoneOffset()
  const local = new Date(time.getTime() + offset * 60_000).toISOString()
  const sign = offset < 0 ? '-' : '+'
  const hours = twoDigits(Math.floor(Math.abs(offset) / 60))
  return `${local.slice(0, 10)} ${local.slice(11, 19)} ${sign}${hours}:${twoDigits(Math.abs(offset) % 60)}`
}
