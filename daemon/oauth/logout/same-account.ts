import type { Account } from '../../../shared/api.ts'

/**
 * Whether two accounts are one person's: by id, or by name where the ids are of different kinds, as
 * when one login was identified by a number and the other by an address.
 */
export const compareAccounts = (
  one: Account | null,
  other: Account | null,
): 'same' | 'other' | 'unknown' => {
  if (!one || !other) return 'unknown'
  if (one.id === other.id) return 'same'
  if (kindOf(one.id) === kindOf(other.id)) return 'other'
  if (one.name.toLowerCase() === other.name.toLowerCase()) return 'same'
  return kindOf(one.name) === kindOf(other.name) ? 'other' : 'unknown'
}

const kindOf = (text: string): 'number' | 'address' | 'word' => {
  if (/^\d+$/.test(text)) return 'number'
  return text.includes('@') ? 'address' : 'word'
}
