import { createHmac } from 'node:crypto'
import { constantTimeEqual } from '../constant-time.ts'

/*
 * A program that squats on our port could steal the bearer token of the first client. So a client first
 * sends a random challenge to `/health`, which only a daemon with the same `run/api.token` can answer. The
 * proof is valid for one address and port, so that another program cannot relay it from the daemon.
 */

export const challengeHeader = 'doorward-challenge'
export const proofHeader = 'doorward-proof'

/** The proof of a daemon with this API token at this endpoint, for a challenge of 32 to 128 hex digits. */
export const computeProof = (apiToken: string, challenge: string, endpoint: string): string =>
  createHmac('sha256', apiToken).update(`doorward-health:${endpoint}:${challenge}`).digest('hex')

/** True for the proof of a daemon with this API token. */
export const isProof = (
  given: string,
  apiToken: string,
  challenge: string,
  endpoint: string,
): boolean => constantTimeEqual(given, computeProof(apiToken, challenge, endpoint))

/** The daemon's end of a connection, in the form that both sides use. */
export const toEndpoint = (address: string | undefined, port: number | undefined): string =>
  `${address?.replace(/^::ffff:(?=\d+\.)/, '')} ${port}`
