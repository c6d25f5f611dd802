import type { Logout } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { findClient, forgetClient } from '../provider/client-file.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import type { Discover } from '../provider/discovery.ts'
import type { OneAtATime } from '../one-at-a-time.ts'
import { type Provider, findProvider } from '../provider/providers.ts'
import type { Revocation } from '../dialect/dialect.ts'
import { dialectOf } from '../dialect/dialects.ts'
import { readToken, removeToken } from '../token/token-file.ts'
import type { TokenRecord } from '../token/token-record.ts'

export type LogOut = (provider: string, forget: boolean) => Promise<Logout>

/**
 * Logs out: takes the tokens back at the provider, then removes the file, whatever the provider said.
 * With `forget` the remembered client goes too. Throws `not-logged-in`.
 */
export const createLogOut = (
  { home, gateway, env, log, announce }: OAuthDependencies,
  discover: Discover,
  inTurn: OneAtATime,
  changed: (provider: string) => void,
  signal: AbortSignal,
): LogOut => {
  const revoke = async (record: TokenRecord): Promise<Revocation> => {
    let provider: Provider | undefined
    try {
      provider = findProvider(record.provider, gateway)
      // Only the client that the tokens were given to can take them back.
      const client = await findClient(home, provider, env, { clientId: record.clientId })
      const endpoints = await discover(provider, signal)
      const revocation = await dialectOf(provider).revoke({
        tokens: record,
        client,
        endpoints,
        apiUrl: provider.apiUrl,
        extent: 'grant',
        signal,
      })
      return withPage(revocation, provider)
    } catch (error) {
      const detail = error instanceof DoorwardError ? error.message : 'the provider was not asked'
      return withPage({ revokedAtProvider: false, detail }, provider)
    }
  }

  return (provider, forget) =>
    inTurn(provider, async () => {
      const record = await readToken(home, provider)
      if (!record) {
        if (forget) await forgetClient(home, provider)
        throw new DoorwardError('not-logged-in', `you are not logged in to ${provider}`)
      }
      const revocation = await revoke(record)
      await removeToken(home, provider)
      changed(provider)
      if (forget) await forgetClient(home, provider)
      const { revokedAtProvider, detail } = revocation
      log.info({ provider, revokedAtProvider }, 'logged out')
      announce({ what: 'logout', provider, state: 'done', ...(detail ? { detail } : {}) })
      return { provider, removed: true, revokedAtProvider, ...(detail && { detail }) }
    })
}

const withPage = (revocation: Revocation, provider: Provider | undefined): Revocation => {
  if (revocation.revokedAtProvider) return revocation
  const where = provider?.permissionsPage
    ? `; you can revoke the access at ${provider.permissionsPage}`
    : '; you can revoke the access in your account settings there'
  return { ...revocation, detail: `${revocation.detail ?? 'not revoked'}${where}` }
}
