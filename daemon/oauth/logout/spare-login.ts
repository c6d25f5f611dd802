import { WWWAuthenticateChallengeError, protectedResourceRequest } from 'oauth4webapi'
import type { Gateway } from '../../../shared/config/schema.ts'
import type { Discover } from '../providers/discovery.ts'
import { findProvider } from '../providers/providers.ts'
import { requestOptions } from '../providers/request.ts'
import { withTimeLimit } from '../../util/abort.ts'
import type { TokenRecord } from '../tokens/token-record.ts'

/*
 * Some providers hold all logins of one browser session to be one grant, and end the newest with the
 * tokens of an older one (Keycloak, Auth0, oidc-provider). They do not say so; it is seen afterwards.
 */

const askLimitMs = 3000

/**
 * Looks whether this login is alive, and returns a second look, for when the tokens of an older one
 * have been revoked: true when the login ended in between. Where nothing can be told, by a provider
 * without a userinfo endpoint or one that does not answer, it is taken for alive.
 */
export type WatchLogin = (
  record: TokenRecord,
  signal: AbortSignal,
) => Promise<() => Promise<boolean>>

/** Watches by the userinfo endpoint, which honours an access token or does not. */
export const createWatchLogin =
  (gateway: Gateway, discover: Discover): WatchLogin =>
  async (record, signal) => {
    const look = async (): Promise<boolean | undefined> => {
      try {
        return await withTimeLimit(askLimitMs, signal, async (limited) => {
          const { server } = await discover(findProvider(record.provider, gateway), limited)
          const endpoint = server.userinfo_endpoint
          return endpoint ? await isAccepted(record.accessToken, endpoint, limited) : undefined
        })
      } catch {
        return undefined
      }
    }
    // One that was refused before, for want of a scope maybe, says nothing when it is refused again.
    if ((await look()) !== true) return async () => false
    return async () => (await look()) === false && !hasExpired(record)
  }

/** What a login becomes that its provider ended with an older one: nothing of it works any more. */
export const endedTogether = (record: TokenRecord, now: number): TokenRecord => {
  const at = new Date(now).toISOString()
  return { ...record, expiresAt: at, ended: { at, cause: endedTogetherCause }, endsTogether: true }
}

/** Why such a login has ended, in words for a person. */
export const endedTogetherCause = 'the provider ended this login together with the one it replaced'

const isAccepted = async (
  accessToken: string,
  endpoint: string,
  signal: AbortSignal,
): Promise<boolean | undefined> => {
  try {
    const { status } = await protectedResourceRequest(
      accessToken,
      'GET',
      new URL(endpoint),
      new Headers({ accept: 'application/json' }),
      null,
      requestOptions(endpoint, signal),
    )
    if (status === 401) return false
    return status === 200 ? true : undefined
  } catch (error) {
    const isChallenge = error instanceof WWWAuthenticateChallengeError && error.status === 401
    return isChallenge ? false : undefined
  }
}

const hasExpired = ({ expiresAt }: TokenRecord): boolean =>
  expiresAt !== null && Date.parse(expiresAt) <= Date.now()
