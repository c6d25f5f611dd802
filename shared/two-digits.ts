/** A part of a time or a date: `07`. */
export const twoDigits = (part: number): string => String(part).padStart(2, '0')
