import type { TokenAnswer } from './dialect.ts'

/**
 * An answer that is an error, in the words of RFC 6749 section 5.2 and with the status 400 that it asks
 * for. The table has the provider's own words; a word it does not have stays. The own one is kept as
 * `provider_error`, because it tells more.
 */
export const errorAnswer = (
  { body }: TokenAnswer,
  table: Readonly<Record<string, string>>,
): TokenAnswer => {
  const own = typeof body['error'] === 'string' ? body['error'] : 'invalid_request'
  const error = Object.hasOwn(table, own) ? table[own] : own
  return { status: 400, body: { ...body, error, ...(error !== own && { provider_error: own }) } }
}
