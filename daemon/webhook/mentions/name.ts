/**
 * True where an at sign at this place stands before exactly this name, in any case: not within a mail address, a
 * path or a longer name such as `@doorward-bot` or `@doorward/team`.
 */
export const isNamedAt = (text: string, at: number, name: string): boolean => {
  const end = at + 1 + name.length
  if (text.slice(at + 1, end).toLowerCase() !== name) return false
  return !isInside(text, at) && !goesOn(text, end)
}

/** Longer than any name, and than any entity. */
const nearby = 64

const isInside = (text: string, at: number): boolean => {
  // Marks of emphasis may stand between.
  const before = text.slice(Math.max(0, at - nearby), at).replace(/[_*~]+$/, '')
  const [, number] = /&#(x[0-9a-f]{1,6}|\d{1,7});$/i.exec(before) ?? []
  const last = number === undefined ? before.slice(-2) : decode(number)
  return /(?:[\p{L}\p{N}\p{M}\p{Cf}]|[@/])$/u.test(last)
}

const goesOn = (text: string, end: number): boolean => {
  const after = text.slice(end, end + nearby)
  const [, number] = /^&#(x[0-9a-f]{1,6}|\d{1,7});/i.exec(after) ?? []
  const next = number === undefined ? after : decode(number) + after.slice(number.length + 3)
  // Letters, digits, marks and invisible characters go on with a name, also behind a line or a full stop.
  return /^[-_.@]*[\p{L}\p{N}\p{M}\p{Cf}]/u.test(next) || /^\/[\p{L}\p{N}]/u.test(next)
}

const decode = (number: string): string => {
  const code = /^x/i.test(number) ? Number.parseInt(number.slice(1), 16) : Number(number)
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}
