/** A duration for people, in at most two units: `340ms`, `2.5s`, `3m 20s`, `4h 2m`, `3d 5h`. */
export const duration = (ms: number): string => {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  const seconds = ms / 1000
  if (seconds < 10) return `${Math.floor(seconds * 10) / 10}s`
  const units: readonly (readonly [string, number])[] = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ]
  const parts: string[] = []
  let rest = Math.floor(seconds)
  for (const [name, size] of units) {
    if (rest >= size && parts.length < 2) parts.push(`${Math.floor(rest / size)}${name}`)
    else if (parts.length > 0) break
    rest %= size
  }
  return parts.join(' ')
}

/** A moment in local time: `12:04:05` on the same day as `now`, else `11-20 12:04`. */
export const moment = (iso: string, now: Date): string => {
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return '?'
  const clock = [time.getHours(), time.getMinutes(), time.getSeconds()].map(two)
  if (time.toDateString() === now.toDateString()) return clock.join(':')
  const day = `${two(time.getMonth() + 1)}-${two(time.getDate())} ${clock.slice(0, 2).join(':')}`
  return time.getFullYear() === now.getFullYear() ? day : `${time.getFullYear()}-${day}`
}

const two = (number: number): string => String(number).padStart(2, '0')

/** How far away a moment is: `in 3h 2m`, `2m 10s ago`. */
export const fromNow = (iso: string, now: Date): string => {
  const ms = Date.parse(iso) - now.getTime()
  if (Number.isNaN(ms)) return '?'
  return ms >= 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`
}
