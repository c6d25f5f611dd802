import { duration, twoDigits } from '../shared/text.ts'

/** A moment in local time: `12:04:05` on the same day as `now`, else `11-20 12:04`. */
export const moment = (iso: string, now: Date): string => {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return '?'
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(twoDigits)
  if (time.toDateString() === now.toDateString()) return clock.join(':')
  const day = `${twoDigits(time.getMonth() + 1)}-${twoDigits(time.getDate())} ${clock.slice(0, 2).join(':')}`
  return time.getFullYear() === now.getFullYear() ? day : `${time.getFullYear()}-${day}`
}

/** How far away a moment is: `in 3h 2m`, `2m 10s ago`. */
export const fromNow = (iso: string, now: Date): string => {
  const ms = Date.parse(iso) - now.getTime()
  if (Number.isNaN(ms)) return '?'
  return ms >= 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`
}
