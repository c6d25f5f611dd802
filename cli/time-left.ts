/** How long it is from now until then (milliseconds since 1970), as a person reads a clock: `9:58`. */
export const timeLeft = (then: number, now: number): string => {
  const seconds = Math.max(0, Math.ceil((then - now) / 1000))
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor(seconds / 60) % 60
  const tail = String(seconds % 60).padStart(2, '0')
  return hours > 0 ? `${hours}:${String(minutes).padStart(2, '0')}:${tail}` : `${minutes}:${tail}`
}
