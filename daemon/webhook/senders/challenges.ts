import { createHmac, type KeyObject } from 'node:crypto'
import type { Challenge } from '../../../shared/signatures/scheme.ts'
import { invalid } from '../signatures/header.ts'
import type { Reply } from './handshakes.ts'

/*
 * Challenges by GET or HEAD. Nothing signs them, so any client gets the answer. Where that is an HMAC by the
 * secret of the deliveries, no text that is answered may be a delivery, or any client could sign one.
 */

/** JSON of an object, a list or a text, and a form with a value, have other characters. */
const answered = /^[A-Za-z0-9+/_-]{1,512}={0,2}$/

/** True for the body of a delivery that a client could have had signed as a challenge. */
export const couldBeChallenge = (bytes: Buffer): boolean =>
  bytes.length === 0 || (bytes.length <= 514 && answered.test(bytes.toString('latin1')))

/** The answer to this challenge. Throws `signature-invalid` for a text of which no HMAC is given away. */
export const answerChallenge = (
  { json, hmac, encoding = 'hex', prefix = '', echo }: Challenge,
  given: string,
  key: KeyObject | undefined,
): Reply => {
  if (hmac !== undefined && !answered.test(given))
    throw invalid(
      'the challenge has other characters than letters, digits, + / _ - and = at its end',
    )
  const made =
    hmac === undefined || !key ? given : createHmac(hmac, key).update(given).digest(encoding)
  const text = prefix + made
  if (json === undefined) return { text }
  const members = { ...(echo !== undefined && { [echo]: given }), [json]: text }
  return { type: 'application/json', text: JSON.stringify(members) }
}
