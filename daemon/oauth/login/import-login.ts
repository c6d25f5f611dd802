import type { ImportedLogin, ImportLogin } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { inspectToken } from '../dialects/github.ts'
import { isOtherAccount } from '../logout/revoke.ts'
import { findProvider } from '../providers/providers.ts'
import type { OAuthServices } from '../services.ts'
import { readAccounts, writeToken } from '../tokens/token-store.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import { readStoredLogin, sameAccountIn } from './save-grant.ts'

type ImportServices = OAuthServices & { readonly signal: AbortSignal }

/**
 * Stores the token of another program, after GitHub has said whose it is. There is no refresh token and no
 * client, and a logout does not revoke it. Throws `provider-unknown`, `provider-misconfigured`,
 * `provider-refused`, `provider-unavailable` or `home-unusable`.
 */
export const createImport =
  ({ dependencies, withLock, tokens, signal }: ImportServices) =>
  async ({ provider: name, accessToken }: ImportLogin): Promise<ImportedLogin> => {
    const { home, gateway, log, announce } = dependencies
    const provider = findProvider(name, gateway)
    if (provider.dialect !== 'github' || provider.apiUrl === undefined)
      throw new DoorwardError(
        'provider-misconfigured',
        `${name} is not a GitHub whose API is known, so no login can be imported`,
        { hint: 'set dialect: github and api_url of the provider in gateway.yaml' },
      )
    await home.keychain?.prepare()
    const inspected = await inspectToken(accessToken, provider.apiUrl, signal)
    const { account, scopes, expiresAt } = inspected
    const now = new Date().toISOString()
    const record: TokenRecord = {
      version: 1,
      provider: provider.name,
      account,
      scopes: [...scopes],
      tokenType: 'Bearer',
      accessToken,
      expiresAt,
      obtainedAt: now,
      loggedInAt: now,
      clientId: 'gh',
      importedFrom: 'gh',
    }
    return withLock(provider.name, async () => {
      const before = tokens.unsaved(provider.name) ?? (await readStoredLogin(home, provider.name))
      const others = (await readAccounts(home, provider.name).catch(() => [])).filter(
        (other) => other.provider !== provider.name,
      )
      await writeToken(home, record)
      tokens.changed(provider.name)
      log.info({ provider: provider.name }, 'login imported from gh')
      const detail = `the login of gh as ${account.name}`
      announce({ what: 'login', provider: provider.name, state: 'done', detail })
      const replaced = before?.account ?? null
      return {
        provider: provider.name,
        account,
        scopes: [...scopes],
        ...(expiresAt !== null && { expiresAt }),
        ...(replaced && isOtherAccount(replaced, account) && { replaced }),
        ...sameAccountIn(others, account),
      }
    })
  }
