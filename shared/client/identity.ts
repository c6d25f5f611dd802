import { createHmac, timingSafeEqual } from 'node:crypto'

/*
 * A program that squats on our port could take the bearer token from the first client that asks. So a
 * client first sends a random challenge to `/health`, and only a daemon that holds the same
 * `run/api.token` can answer it. The answer holds for the address and port it was asked at alone, so
 * that a program elsewhere cannot fetch it from the daemon and pass it on.
 */

export const challengeHeader = 'doorward-challenge'
export const proofHeader = 'doorward-proof'

/** What a daemon with this API token answers, at this place, to a challenge of 32 to 128 hex digits. */
export const computeProof = (apiToken: string, challenge: string, place: string): string =>
  createHmac('sha256', apiToken).update(`doorward-health:${place}:${challenge}`).digest('hex')

/** Whether this is what a daemon with this API token answers. */
export const isProof = (
  given: string,
  apiToken: string,
  challenge: string,
  place: string,
): boolean => isEqualInConstantTime(given, computeProof(apiToken, challenge, place))

/** The daemon's end of a connection, written the same on both sides. */
export const toEndpoint = (address: string | undefined, port: number | undefined): string =>
  `${address?.replace(/^::ffff:(?=\d+\.)/, '')} ${port}`

/** Compares two texts in a time that tells nothing of where they differ. */
export const isEqualInConstantTime = (a: string, b: string): boolean => {
  const key = 'comparison'
  const digest = (text: string) => createHmac('sha256', key).update(text).digest()
  return timingSafeEqual(digest(a), digest(b))
}
