import type { Gateway } from '../../../shared/config/schema.ts'
import { getDialect } from '../dialects/dialects.ts'
import { findProvider } from '../providers/providers.ts'

/** True where a refresh at this provider ends the access token before it, as at GitHub. */
export const isEndedByRefresh = (provider: string, gateway: Gateway): boolean => {
  try {
    return getDialect(findProvider(provider, gateway)).refreshEndsAccessToken === true
  } catch {
    // No longer in gateway.yaml: nothing renews it.
    return false
  }
}
