import { DoorwardError } from '../../shared/errors.ts'

/**
 * `?min_validity=60`: seconds, returned in milliseconds; undefined where it is not given. Throws
 * `request-invalid`.
 */
export const minValidityMs = (
  value: string | readonly string[] | undefined,
): number | undefined => {
  if (value === undefined) return undefined
  const text = typeof value === 'string' ? value : value.length === 1 ? value[0] : undefined
  if (text !== undefined && /^\d{1,8}$/.test(text)) return Number(text) * 1000
  throw new DoorwardError('request-invalid', 'min_validity: a whole number of seconds')
}
