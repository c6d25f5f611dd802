import type { AccessToken } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Terminal } from './terminal.ts'

/**
 * A fresh access token of a provider, valid for so many seconds more where that is asked for. Throws
 * what the daemon refuses it with, and a login that is needed never without a hint.
 */
export const accessTokenOf = async (
  client: Pick<Client, 'get'>,
  provider: string,
  minValiditySeconds?: number,
): Promise<AccessToken> => {
  const query = minValiditySeconds === undefined ? '' : `?min_validity=${minValiditySeconds}`
  const path = `/oauth/tokens/${encodeURIComponent(provider)}/access${query}`
  // A refresh may come first: the daemon has time limits of its own for that.
  const answer = await client
    .get<AccessToken>(path, { timeoutMs: 90_000 })
    .catch((error: unknown) => {
      throw withLogin(error, provider)
    })
  // What goes into a variable or a line of a protocol must not be able to begin another one; RFC 6749
  // appendix A.12 allows no other characters.
  if (typeof answer?.accessToken === 'string' && /^[\x20-\x7e]+$/.test(answer.accessToken))
    return answer
  throw new DoorwardError('internal', `the daemon gave no usable token of ${provider}`, {
    hint: `doorward oauth login ${provider}`,
  })
}

const withLogin = (error: unknown, provider: string): unknown =>
  error instanceof DoorwardError && (error.code === 'not-logged-in' || error.code === 'needs-login')
    ? new DoorwardError(error.code, error.message, {
        cause: error,
        hint: error.hint ?? `doorward oauth login ${provider}`,
      })
    : error

/** The token alone, or with `--json` the daemon's whole answer. */
export const showToken = (terminal: Terminal, answer: AccessToken): void => {
  if (terminal.json) terminal.printJson(answer)
  else terminal.print(answer.accessToken)
}
