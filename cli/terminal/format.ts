import type { Status } from '../../shared/api/api.ts'
import { quoteForShell } from '../../shared/home/home.ts'
import { describeUnfinished } from '../../shared/privacy.ts'
import { formatDuration, twoDigits } from '../../shared/text.ts'

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
  return ms >= 0 ? `in ${formatDuration(ms)}` : `${formatDuration(-ms)} ago`
}

/** Time that has passed, in milliseconds, as a stopwatch shows it: `0:12`, `1:02:03`. */
export const clock = (ms: number): string => {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [hours, minutes, rest] = [
    Math.floor(seconds / 3600),
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ]
  return hours > 0
    ? `${hours}:${twoDigits(minutes)}:${twoDigits(rest)}`
    : `${minutes}:${twoDigits(rest)}`
}

/** A text as one word of a POSIX shell, so that a command that is shown can be copied whatever is in it. */
export const shellWord = quoteForShell

/** When a daemon that was stopped ends, in words; undefined of one that goes on. */
export const endingWords = ({
  stopping,
  queue,
}: Pick<Status, 'stopping' | 'queue'>): string | undefined => {
  if (!stopping) return undefined
  const unfinished = queue.running + queue.waiting
  return unfinished === 0 ? 'now' : describeUnfinished(unfinished)
}
