import { InvalidArgumentError } from 'commander'
import { millisecondsOf } from '../shared/text.ts'

/*
 * What the argument parser makes of the value of an option. Each throws what it is to be instead.
 */

export const wholeNumber = (text: string): number => {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It is a number from 1 to 999999.')
}

/** Whole seconds. */
export const seconds = (text: string): number => {
  const ms = millisecondsOf(/^\d+$/.test(text) ? `${text}s` : text)
  if (ms <= 30 * 86_400_000) return Math.ceil(ms / 1000)
  throw new InvalidArgumentError('It is a duration such as 60s, 10m or 1h, of 30d at most.')
}

/** Of an option that can be repeated. */
export const listed = (text: string, before: string[] = []): string[] => [...before, text]
